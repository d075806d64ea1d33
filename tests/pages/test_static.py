"""What `collectstatic` makes of the page: every module under a hashed name, every import rewritten to one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.prepared import collect_static_files

IMPORT = re.compile(r"""(?:import|export)[^;"']*?["'](\.[^"']+)["']""")
FETCH = """
import json, re, sys
import django
django.setup()
from django.test import Client
client = Client(headers={"host": "localhost"})
page = client.get("/", secure=True).content.decode()
answers = {}
for address in sorted(set(re.findall(r'"(/static/[^"]+)"', page))):
    answer = client.get(address, secure=True)
    answers[address] = [answer.status_code, answer["Content-Type"], answer.get("Cache-Control", "")]
json.dump(answers, sys.stdout)
"""


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of an installation that is not in development, with its static files collected."""
    place = tmp_path_factory.mktemp("production")
    environment = {
        **os.environ,
        "DEBUG": "0",
        "SECRET_KEY": "only-for-this-test-and-long-enough-to-be-one",
        "PUBLIC_PAGE": "guest",
        "VAR_DIR": str(place),
        "STATIC_ROOT": str(place / "static"),
        "DJANGO_SETTINGS_MODULE": "voiceapp.settings",
        "PYTHONPATH": str(settings.BASE_DIR),
    }
    environment.pop("DATABASE_URL", None)
    collect_static_files(place / "static")
    return environment


def collected(production: dict[str, str]) -> tuple[Path, dict[str, str]]:
    root = Path(production["STATIC_ROOT"])
    return root, json.loads((root / "staticfiles.json").read_text())["paths"]


def test_it_rewrites_every_import_to_a_hashed_name(production: dict[str, str]) -> None:
    root, paths = collected(production)
    imports = 0
    for name, hashed in paths.items():
        if not (name.startswith("voice/") and name.endswith(".js")):
            continue
        for target in IMPORT.findall((root / hashed).read_text()):
            imports += 1
            assert re.search(r"\.[0-9a-f]{12}\.js$", target), f"{name} imports {target}"
            assert ((root / hashed).parent / target).resolve().is_file(), f"{name} imports {target}"
    assert imports > 30


def test_it_serves_what_its_page_names_forever(production: dict[str, str]) -> None:
    _, paths = collected(production)
    fetched = subprocess.run(
        [sys.executable, "-c", FETCH], cwd=settings.BASE_DIR, env=production, check=True, capture_output=True, text=True
    )
    answers: dict[str, tuple[int, str, str]] = json.loads(fetched.stdout)
    for name in ("base.css", "voice/main.js", "voice/audio/capture.worklet.js", "voice/audio/playback.worklet.js"):
        assert f"/static/{paths[name]}" in answers
    for address, (status, kind, cache) in answers.items():
        assert status == 200, address
        assert "immutable" in cache, address
        if address.endswith(".js"):
            assert "javascript" in kind, address


def test_the_vendored_script_is_the_one_whose_checksum_is_written_down() -> None:
    script = Path(settings.BASE_DIR, "static", "voice", "vendor", "moq-net.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() in Path(settings.BASE_DIR, "THIRD-PARTY.md").read_text()
