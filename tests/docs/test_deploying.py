"""The files for deploying name settings, requirements and paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.serving import ROOT

FILES = [ROOT / "Containerfile", ROOT / "compose.yaml", *sorted((ROOT / "docs" / "deploying").iterdir())]
NOT_OURS = {"PATH", "PORT", "BASE", "EXTRAS", "DATABASE_PASSWORD"}
NOT_OURS |= {"POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
SETTING = re.compile(r"\b([A-Z]+_[A-Z_]+|PATH|PORT)[=:](?! \{)")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_names_settings_that_exist(file: Path) -> None:
    known = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    named = set(SETTING.findall(file.read_text()))
    assert named - NOT_OURS <= known


def test_the_image_takes_what_the_repository_has() -> None:
    image = (ROOT / "Containerfile").read_text()
    extras = re.search(r'such as "([a-z0-9 ]+)"', image)
    assert extras
    assert [extra for extra in extras[1].split() if not (ROOT / f"requirements-{extra}.txt").is_file()] == []
    ignored = (ROOT / ".containerignore").read_text().split()
    assert not {"docs", "static", "templates", "voiceapp", "manage.py"} & set(ignored)
