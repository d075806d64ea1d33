"""Contradictory settings are found, with an id and a hint."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

from tests.prepared import collect_static_files
from tests.serving import ROOT, manage
from voiceapp.catalogue.servers import UpstreamSettings
from voiceapp.disk import disks
from voiceapp.server.checks import EPHEMERAL_HOSTS, check_settings
from voiceapp.server.management.commands.serve import refuse_development
from voiceapp.settings.environment import development_key
from voiceapp.settings.removed import removed


@pytest.fixture(autouse=True)
def _no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in EPHEMERAL_HOSTS:
        monkeypatch.delenv(variable, raising=False)


def ids() -> list[str | None]:
    findings = check_settings()
    assert all(finding.hint for finding in findings)
    return [finding.id for finding in findings]


def test_a_setting_that_was_removed_is_told_with_what_to_set_now() -> None:
    names = ["UPSTREAM_VENDOR", "UPSTREAM_VOICE", "UPSTREAM_ACME_WARM", "DEFAULT_VOICE", "UPSTREAM_WEBHOOK_URL"]
    told = removed(names)
    assert [sentence.partition(" has had no effect since 1.1.0: ")[0] for sentence in told] == [
        "UPSTREAM_ACME_WARM",
        "UPSTREAM_VOICE",
        "UPSTREAM_WEBHOOK_URL",
    ]
    assert "set UPSTREAM_CHAT_MODELS or CHAT_BASE_URL" in told[1]


def test_it_finds_nothing_on_a_laptop() -> None:
    assert ids() == []


def test_an_address_holds_a_password_or_has_a_key(settings: Settings) -> None:
    settings.CHAT_BASE_URL, settings.CHAT_MODEL = "http://10.0.0.5/v1, http://me:secret@10.0.0.6/v1", "llama"
    assert ids() == []
    settings.CHAT_API_KEY = "key"
    assert ids() == ["server.E041"]
    settings.CHAT_BASE_URL = "http://10.0.0.5/v1, http://10.0.0.6/v1"
    assert ids() == []
    settings.CHAT_BASE_URL = "ftp://me:secret@10.0.0.6/v1"
    assert not any("secret" in str(finding) for finding in check_settings())


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("REMOVED_SETTINGS", ["UPSTREAM_VOICE has had no effect since 1.1.0."], "server.I026"),
        ("PORT", 70_000, "server.E004"),
        ("PORT", 0, "server.E004"),
        ("CHAT_BASE_URL", "localhost:11434/v1", "server.E005"),
        ("CHAT_MODEL", "llama", "server.W007"),
        ("CHAT_API_KEY", "secret", "server.W007"),
        ("ADMIN_PATH", "/admin", "server.E008"),
        ("LOCAL_TIME_ZONE", "Mars/Olympus", "server.E009"),
        ("DOCUMENTS_DIR", "/no/such/folder", "server.E010"),
        ("VOICES_DIR", "/no/such/folder", "server.E024"),
        ("ASR_MODEL", "whisper-1", "server.W030"),
        ("TTS_BASE_URL", "nope", "server.E005"),
        ("RERANK_BASE_URL", "tcp://127.0.0.1:80", "server.E005"),
        ("UPSTREAMS", (UpstreamSettings("foo", "", ""),), "server.E005"),
        ("UPSTREAMS", (UpstreamSettings("https://voice.example.org", "", "", ws_url="voice"),), "server.E005"),
        ("UPSTREAMS", (UpstreamSettings("", "", "", chat_models=["large"]),), "server.W023"),
        ("UPSTREAMS", (UpstreamSettings("https://me:pw@voice.example.org", "key", ""),), "server.E041"),
        ("MAX_CONNECTIONS", 0, "server.E011"),
        ("SEND_TIMEOUT_S", 0.0, "server.E011"),
        ("PING_S", 0.0, "server.E011"),
        ("DATABASE_POOL_SIZE", 0, "server.E011"),
        ("TASK_ENGINE", "elsewhere", "server.E014"),
        ("TASK_ENGINE", "celery", "server.E015"),
        ("DRAIN_S", -1.0, "server.W013"),
        ("SECURE_HSTS_PRELOAD", True, "server.W020"),
    ],
)
def test_it_finds_a_wrong_value(settings: Settings, name: str, value: object, found: str) -> None:
    settings.SPEECH_LANGUAGES = ("en", "de")
    assert found not in ids()
    setattr(settings, name, value)
    assert found in ids()


@pytest.mark.parametrize(
    ("package", "wanted", "found"),
    [
        ("celery", {"TASK_ENGINE": "celery", "CELERY_BROKER_URL": "redis://127.0.0.1:6379/1"}, "server.E016"),
        ("ctranslate2", {"SPEECH_LANGUAGES": ("en", "de")}, "server.E029"),
        ("wyoming", {"ASR_BASE_URL": "tcp://127.0.0.1:10300"}, "server.E018"),
        ("wyoming", {"TTS_BASE_URL": "tcp://127.0.0.1:10300"}, "server.E018"),
    ],
)
def test_it_says_how_to_install_a_package_that_is_missing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, package: str, wanted: dict[str, object], found: str
) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, package, None)
        assert ids() == []
        for name, value in wanted.items():
            setattr(settings, name, value)
        (finding,) = check_settings()
    assert finding.id == found
    assert f"requirements-{'whisper' if package == 'ctranslate2' else package}.txt" in finding.hint
    assert ids() == []


def test_conversations_may_use_a_chat_model_of_a_service(settings: Settings) -> None:
    settings.CHAT_MODEL = "large"
    settings.UPSTREAMS = (UpstreamSettings("https://voice.example.org", "", "", chat_models=["large"]),)
    assert ids() == []


def test_secrets_are_for_their_owner(settings: Settings, tmp_path: Path) -> None:
    settings.DEBUG, settings.BASE_DIR = False, tmp_path
    assert ids() == []
    (tmp_path / ".env").touch()
    (tmp_path / ".env").chmod(0o644)
    assert ids() == ["server.W028"]
    (tmp_path / ".env").chmod(0o640)
    assert ids() == []


def test_it_finds_a_folder_that_cannot_be_written(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.VAR_DIR = tmp_path / "file" / "var"
    disks.cache_clear()
    try:
        assert ids() == ["server.I027"]
    finally:
        disks.cache_clear()


def test_it_misses_the_model_of_a_chat_server(settings: Settings) -> None:
    settings.CHAT_BASE_URL, settings.CHAT_MODEL = "http://127.0.0.1:11434/v1", ""
    assert ids() == ["server.W006"]


@pytest.mark.parametrize(
    ("name", "value"), [("PUBLIC_PAGE", "everyone"), ("TRANSCRIPT_DAYS", -1), ("MAX_SESSIONS_PER_ACCOUNT", 0)]
)
def test_one_mistake_is_named_once(settings: Settings, name: str, value: object) -> None:
    setattr(settings, name, value)
    assert len(run_checks()) == 1


def test_it_refuses_sqlite_where_the_disk_is_lost(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO", "web.1")
    settings.HTTPS = False
    assert ids() == ["server.E001"]
    settings.ALLOW_EPHEMERAL_DB = True
    assert ids() == []


def test_it_warns_of_a_redirect_without_end(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RENDER", "true")
    settings.ALLOW_EPHEMERAL_DB, settings.HTTPS, settings.TRUST_PROXY = True, True, False
    assert ids() == ["server.W002"]


def printed(program: str, **variables: str) -> tuple[str, str]:
    """What a process of its own prints, and what it complains of."""
    clean = {name: value for name, value in os.environ.items() if name != "WEBHOOK_ALLOWED_NETWORKS"}
    environment = {**clean, "DEBUG": "1", "SECRET_KEY": "s" * 50, **variables}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.stdout, done.stderr


def run(*command: str, **environment: str) -> tuple[int, str]:
    variables = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "voiceapp.settings", **environment}
    return manage(*command, environment=variables)


@pytest.mark.parametrize(
    "variables", [{"TRUST_PROXY": "1"}, {"HTTPS": "0", "CHAT_MODEL": "large", "UPSTREAM_CHAT_MODELS": "large"}]
)
def test_it_is_clean_for_deployment_once_static_files_are_collected(variables: dict[str, str], tmp_path: Path) -> None:
    production = {
        "SECRET_KEY": "a-long-random-string-0123456789-abcdefghijklmnopqrstuvwxyz",
        "ALLOWED_HOSTS": "voice.example.org",
        "UPSTREAM_BASE_URL": "https://voice.example.net",
        "DEBUG": "0",
        **variables,
        "VAR_DIR": str(tmp_path),
        "STATIC_ROOT": str(tmp_path / "static"),
    }
    check = ("check", "--deploy", "--fail-level", "WARNING")

    status, log = run(*check, **production)
    assert status == 1
    assert "server.W018" in log
    assert "1 issue" in log
    collect_static_files(tmp_path / "static")
    status, log = run(*check, **production)
    assert status == 0, log


def test_a_build_needs_no_secret_and_everything_else_does(tmp_path: Path) -> None:
    building = {"DEBUG": "0", "VAR_DIR": str(tmp_path), "STATIC_ROOT": str(tmp_path / "static")}
    assert run("collectstatic", "--noinput", "--dry-run", **building)[0] == 0
    status, log = run("serve", "--port", "0", **building)
    assert (status, "SECRET_KEY is not set" in log) == (1, True), log


def test_development_is_for_the_own_machine(tmp_path: Path) -> None:
    status, log = run("serve", "--port", "0", "--host", "0.0.0.0", DEBUG="1", VAR_DIR=str(tmp_path))
    assert status == 1
    assert log.startswith("CommandError: DEBUG=1 is for your own machine")
    refuse_development("localhost")
    refuse_development("192.168.7.5")


def test_each_development_instance_signs_with_a_key_of_its_own(tmp_path: Path) -> None:
    first, again, other = (development_key(tmp_path / name) for name in ("a", "a", "b"))
    assert len(first) >= 50
    assert first == again != other
    assert (tmp_path / "a" / "development-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "max-age=31536000"),
        (
            {"SECURE_HSTS_SECONDS": "60", "SECURE_HSTS_INCLUDE_SUBDOMAINS": "1", "SECURE_HSTS_PRELOAD": "1"},
            "max-age=60; includeSubDomains; preload",
        ),
    ],
)
def test_browsers_are_told_nothing_about_other_hosts_unless_asked_to(
    variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    answer = "Client().get('/openapi.json', secure=True, SERVER_NAME='localhost')"
    header = "Strict-Transport-Security"
    program = f"import django; django.setup(); from django.test import Client; print({answer}[{header!r}])"
    production = {"DJANGO_SETTINGS_MODULE": "voiceapp.settings", "DEBUG": "0", "VAR_DIR": str(tmp_path)}
    found, log = printed(program, **production, **variables)
    assert found == f"{said}\n", log


def test_it_does_not_serve_from_a_database_that_will_be_lost(tmp_path: Path) -> None:
    lost = {"DYNO": "web.1", "DATABASE_URL": "sqlite:///:memory:"}
    status, log = run("serve", "--port", "0", DEBUG="1", VAR_DIR=str(tmp_path), **lost)
    assert status == 1
    assert "server.E001" in log
    assert "DATABASE_URL" in log


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WEBHOOK_ALLOWED_NETWORKS", "192.168.7.5/24", "has host bits set"),
        ("FETCH_ALLOWED_NETWORKS", "127.0.0.0/8,home", "'home' does not appear to be"),
        ("WEBHOOK_RETRY_SCHEDULE", "10,-5", "seconds, such as 10,30,60: not '-5'"),
        ("WEBHOOK_RETRY_SCHEDULE", "10,soon", "seconds, such as 10,30,60: not 'soon'"),
        ("WEBHOOK_RETRY_SCHEDULE", "inf", "seconds, such as 10,30,60: not 'inf'"),
        ("MAX_SESSIONS", "many", "is 'many', which cannot be read"),
        ("DRAIN_S", "soon", "is 'soon', which cannot be read"),
        ("HTTPS", "ture", "is 'ture': write 1 or 0"),
        ("LOG_LEVEL", "loud", "is 'LOUD': write DEBUG, INFO"),
    ],
)
def test_what_cannot_be_read_keeps_the_server_from_starting(name: str, value: str, said: str) -> None:
    _, log = printed("from voiceapp import settings", **{name: value})
    sentence = log.splitlines()[-1]
    assert sentence.startswith("django.core.exceptions.ImproperlyConfigured: ")
    assert name in sentence
    assert said in sentence


@pytest.mark.parametrize(
    ("variables", "name", "value"),
    [
        ({"MAX_BODY_BYTES": "5000000"}, "DATA_UPLOAD_MAX_MEMORY_SIZE", 5_000_000),
        ({"FETCH_ALLOWED_NETWORKS": "127.0.0.0/8, ::1/128"}, "FETCH_ALLOWED_NETWORKS", ["127.0.0.0/8", "::1/128"]),
        ({"WEBHOOK_ALLOWED_NETWORKS": "10.0.0.0/8, ::1/128"}, "WEBHOOK_ALLOWED_NETWORKS", ["10.0.0.0/8", "::1/128"]),
        ({}, "WEBHOOK_ALLOWED_NETWORKS", ["127.0.0.1/32", "::1/128"]),
        ({"DEBUG": "0"}, "WEBHOOK_ALLOWED_NETWORKS", []),
        ({"ALLOWED_HOSTS": "voice.example.org, www.x.org"}, "ALLOWED_HOSTS", ["voice.example.org", "www.x.org"]),
        ({"LOG_LEVEL": "warning"}, "LOG_LEVEL", "WARNING"),
    ],
)
def test_settings_follow_their_variables(variables: dict[str, str], name: str, value: object) -> None:
    assert printed(f"from voiceapp import settings; print(repr(settings.{name}))", **variables) == (f"{value!r}\n", "")
