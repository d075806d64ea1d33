"""`manage.py agents export|apply`: agents as TOML files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from voiceapp.agents.files import apply, export


class Command(BaseCommand):
    help = "Writes the published agents into a folder as TOML files, or publishes those of a folder."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("action", choices=("export", "apply"))
        parser.add_argument("folder", nargs="?", default=settings.AGENTS_DIR, help="default: AGENTS_DIR")

    def handle(self, *, action: str, folder: str, **options: Any) -> None:
        if not folder:
            raise CommandError("Name a folder, or set AGENTS_DIR.")
        if action == "export":
            for path in export(Path(folder)):
                self.stdout.write(f"{path}")
            return
        if not Path(folder).is_dir():
            raise CommandError(f"The folder {folder} does not exist.")
        if wrong := apply(Path(folder), self.stdout.write):
            raise CommandError(
                "\n".join(map(str, wrong)) + "\nThe other agents are published; mend these, and apply again."
            )
