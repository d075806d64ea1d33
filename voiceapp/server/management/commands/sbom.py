"""`manage.py sbom`: the software bill of materials: pinned packages, and models with their checksums."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from voiceapp.engines.models.weights import MODELS
from voiceapp.formats import moment

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


class Command(BaseCommand):
    help = "Print the software bill of materials (CycloneDX 1.6, JSON): the packages of the lock files, and the models."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="where to write it; the standard output without it")

    def handle(self, *, file: Path | None, **options: Any) -> None:
        text = json.dumps(bill(Path(settings.BASE_DIR)), indent=1, ensure_ascii=False)
        if file:
            file.write_text(f"{text}\n")
        else:
            self.stdout.write(text)


def bill(root: Path) -> dict[str, Any]:
    """Return the bill of materials of the source code in a folder."""
    packages: set[tuple[str, str]] = set()
    carriers: dict[str, str] = {}
    for lock in root.glob("requirements*.txt"):
        pinned = PINNED.findall(lock.read_text())
        if lock.stem == "requirements-models":  # opened for the models in them, and never installed
            carriers = dict(pinned)
        else:
            packages.update(pinned)
    models = [
        {
            "type": "machine-learning-model",
            "bom-ref": f"model:{file.name}",
            "name": file.name,
            "version": " ".join(f"{name}=={carriers[name]}" for name in model.packages),
            "description": model.title,
            "hashes": [{"alg": "SHA-256", "content": file.sha256}],
        }
        for model in MODELS
        for file in (*model.files, *model.sources)
        if file.sha256
    ]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": moment(timezone.now()),
            "component": _package("voiceapp", settings.VERSION, "application"),
        },
        "components": [*(_package(*package) for package in sorted(packages)), *models],
    }


def _package(name: str, version: str, kind: str = "library") -> dict[str, str]:
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}
