"""The reference of settings, and `.env.example`, which is written from the same source."""

from __future__ import annotations

import re

from tests.serving import ROOT
from voiceapp.docs.manual import page
from voiceapp.settings.reference import env_example, settings_of

READ = re.compile(r'\benv\.\w+\(\s*(?:(own|shared)\()?"([A-Z0-9_]+)"')
"""A setting that the settings read; one of each service is named without its prefix."""


def test_it_knows_every_setting_and_its_meaning() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "voiceapp" / "settings").glob("*.py"))
    read = {f"UPSTREAM_{name}" if of_service else name for of_service, name in READ.findall(sources)}
    found = settings_of()
    assert sorted(setting.name for setting in found) == sorted(read)
    assert [setting.name for setting in found if not setting.meaning.endswith((".", ")"))] == []


def test_it_spells_defaults_as_an_environment_does() -> None:
    defaults = {setting.name: (setting.kind, setting.default) for setting in settings_of()}
    assert defaults["HTTPS"] == ("1 or 0", "1")
    assert defaults["DRAIN_S"] == ("number", "20")
    assert defaults["ALLOWED_HOSTS"] == ("list", "localhost,127.0.0.1,[::1]")
    assert defaults["DATABASE_URL"] == ("text", "sqlite:///var/voiceapp.sqlite3")
    assert defaults["MAX_SESSIONS"] == ("whole number", "32")


def test_env_example_is_written_from_the_settings_and_changes_nothing_as_it_is() -> None:
    text = (ROOT / ".env.example").read_text()
    assert text == env_example(), "run `make settings`"
    assert [line for line in text.splitlines() if line and line[0] != "#"] == []


def test_the_manual_has_a_page_of_them() -> None:
    settings = page("settings")
    assert settings
    assert all(f"<code>{setting.name}</code>" in settings.html for setting in settings_of())
