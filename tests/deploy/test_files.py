"""The files for hosts name settings, requirements and commands that exist, and keep to the schemas of their formats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.core.management import get_commands

from tests.serving import ROOT
from voiceapp.settings.reference import settings_of

DEPLOY = ROOT / "docs" / "deploy"
FILES = [ROOT / name for name in ("Containerfile", "Procfile", "app.json", "compose.yaml", "fly.toml", "railway.json")]
FILES += [ROOT / "render.yaml", *(path for path in sorted(DEPLOY.rglob("*")) if path.is_file())]
NOT_OURS = {"PATH", "PORT", "BASE", "EXTRAS", "DATABASE_PASSWORD", "POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"}
NOT_OURS |= {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
NOT_OURS |= {"AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX", "NOTIFY_SOCKET", "ON_FAILURE", "RAILWAY_PUBLIC_DOMAIN"}
EXTRAS = re.compile(r'EXTRAS(?: ?= ?|\s+value: )"?([a-z0-9][a-z0-9, ]*)')
SETTING = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b(?![$.])")


def kubernetes_objects() -> Iterator[dict[str, Any]]:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield from document["items"] if document["kind"] == "List" else [document]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_names_settings_extras_and_commands_that_exist(file: Path) -> None:
    text = file.read_text()
    assert set(SETTING.findall(text)) - NOT_OURS <= {setting.name for setting in settings_of()}
    extras = {extra for listed in EXTRAS.findall(text) for extra in re.split("[, ]+", listed)}
    assert {extra for extra in extras if not (ROOT / f"requirements-{extra}.txt").is_file()} == set()
    commands = set(re.findall(r'manage\.py["\',]* ["\']?(\w+)', text))
    assert commands <= set(get_commands())


def test_the_image_takes_what_a_server_reads_and_no_secrets() -> None:
    ignored = set((ROOT / ".dockerignore").read_text().split())
    assert ignored >= {".env", ".git", ".venv", "var"}
    assert not {"bin", "docs", "static", "templates", "voiceapp", "manage.py"} & ignored


def test_hosts_where_no_udp_comes_in_switch_webrtc_off() -> None:
    heroku = json.loads((ROOT / "app.json").read_text())["env"]["RTC_ENABLED"]["value"]
    fly = tomllib.loads((ROOT / "fly.toml").read_text())["env"]["RTC_ENABLED"]
    render = yaml.safe_load((ROOT / "render.yaml").read_text())["services"][0]["envVars"]
    assert (heroku, fly) == ("0", "0")
    assert {"key": "RTC_ENABLED", "value": "0"} in render


def test_compose_keeps_to_the_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "found", kubernetes_objects(), ids=lambda found: f"{found['kind']} {found['metadata']['name']}"
)
def test_kubernetes_knows_every_field(found: dict[str, Any]) -> None:
    kubernetes_validate.validate(found, "1.33", strict=True)
