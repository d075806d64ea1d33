"""Secrets never reach the log, callers write no lines of it, and what no operator can act on is no ERROR."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import DisallowedHost
from django.db import OperationalError

from tests.prepared import environment_of
from tests.serving import ROOT
from tests.web import receiving
from voiceapp.formats import one_line
from voiceapp.server.logs import DjangoRecords, MaskSecrets, mask, path_of


@pytest.mark.parametrize(
    "text",
    [
        "sk-live_0123456789abcdef",
        "st-0123456789abcdef",
        "whsec_MDEyMzQ1Njc4OWFiY2RlZg==",
        "Authorization: Bearer 0123456789abcdef",
        "authorization: bearer 0123456789abcdef",
        '"aoqTokenForClient": "0123456789abcdef"',
        "a=ice-pwd:0123456789abcdef",
        "GET /voice/socket?model=voice&token=0123456789abcdef",
        "CONNECT /aoq?jwt=0123456789abcdef",
        "GET /voice/socket?model=voice&resume=0123456789abcdef",
        "GET /api/v1/files/0123456789abcdef:1xUd8p:sig/0-speech.wav",
    ],
)
def test_it_masks(text: str) -> None:
    masked = mask(f"before {text} after")
    assert "0123456789" not in masked
    assert "MDEyMzQ1" not in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@pytest.mark.parametrize("text", ["first-class seats", "task-queue-length", "a disk-full day", "GET /a?model=voice"])
def test_it_leaves_ordinary_words(text: str) -> None:
    assert mask(text) == text


def logged(log: logging.Logger) -> io.StringIO:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(MaskSecrets())
    log.handlers, log.propagate = [handler], False
    return stream


def test_it_masks_arguments_and_tracebacks() -> None:
    log = logging.getLogger("tests.masked")
    stream = logged(log)
    log.warning("key %s of %d", "sk-0123456789abcdef", 3)
    try:
        raise ValueError("refused sk-0123456789abcdef")
    except ValueError:
        log.exception("failed")
    said = stream.getvalue()
    assert "0123456789" not in said
    assert "key sk-*** of 3" in said
    assert "ValueError: refused sk-***" in said


@pytest.mark.parametrize("debug", ["0", "1"])
def test_what_django_says_is_written_once_and_masked(debug: str) -> None:
    program = (
        "import django, logging; django.setup(); "
        "logging.getLogger('django.security.csrf').warning('seen with sk-abcdefghijklmnop')"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "voiceapp.settings", "DEBUG": debug, "SECRET_KEY": "s" * 50}
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120).stderr
    assert (said.count("seen with"), said.count("sk-***"), "abcdefgh" in said) == (1, 1, False)


async def test_errors_are_reported_masked_and_without_what_callers_sent(tmp_path: Path) -> None:
    program = (
        "import django, logging; django.setup(); log = logging.getLogger('voiceapp.test')\n"
        "def fail(heard): raise ValueError('refused sk-abcdefghijklmnop')\n"
        "log.warning('no error'); log.error('name %s of %s', 'Bearer qrstuvwxyz', 'the caller')\n"
        "try: fail('what' + ' was said')\n"
        "except ValueError: log.exception('session sess_1: failed')\n"
    )
    async with receiving() as sentry:
        environment = environment_of(tmp_path) | {"SENTRY_DSN": sentry.origin.replace("://", "://public@") + "/7"}
        command = [sys.executable, "-c", program]
        await asyncio.to_thread(subprocess.run, command, cwd=ROOT, env=environment, check=True, timeout=120)
        reported = (await sentry.wait_for(b"sess_1: failed")).decode()
    assert "name Bearer *** of the caller" in reported
    assert "ValueError" in reported
    assert "refused sk-***" in reported
    for kept_back in ("abcdefgh", "qrstuv", "what was said", "no error", '"params"', '"user"', '"vars"'):
        assert kept_back not in reported


def record(name: str, message: str, *arguments: object, error: Exception | None = None) -> logging.LogRecord:
    exc_info = (type(error), error, None) if error else None
    return logging.LogRecord(name, logging.ERROR, __file__, 1, message, arguments, exc_info)


def test_a_refused_request_is_a_warning_on_one_short_line() -> None:
    refused = record("django.security.DisallowedHost", "Invalid host:\n" + "x" * 9000, error=DisallowedHost("x"))
    assert DjangoRecords().filter(refused)
    assert (refused.levelname, refused.exc_info) == ("WARNING", None)
    assert refused.getMessage().startswith("Invalid host:\\nxxx")
    assert len(refused.getMessage()) <= 300


def test_a_page_without_its_database_is_a_warning_and_a_fault_stays_an_error() -> None:
    away = record("django.request", "%s: %s", "Service Unavailable", "/", error=OperationalError("connection\nrefused"))
    assert DjangoRecords().filter(away)
    assert (away.levelname, away.exc_info) == ("WARNING", None)
    assert away.getMessage() == "Service Unavailable: /: connection\\nrefused"

    fault = record("django.request", "%s: %s", "Internal Server Error", "/", error=ZeroDivisionError("a bug"))
    assert DjangoRecords().filter(fault)
    assert (fault.levelname, fault.exc_info is None) == ("ERROR", False)


def test_a_status_alone_is_not_logged_a_second_time() -> None:
    assert not DjangoRecords().filter(record("django.request", "%s: %s", "Bad Gateway", "/api/v1/x"))
    assert DjangoRecords().filter(record("voiceapp.tasks", "a fault"))


def test_what_callers_write_stays_on_one_line_and_short() -> None:
    assert one_line("a\nb\x1b\u2028é") == r"a\nb\x1b\u2028\xe9"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("\n" * 300) == r"\n" * 149 + "\\…"
    assert len(one_line("x" * 301)) == 300
    assert path_of({"path": "/a\nb"}) == "/a%0Ab"
    assert len(path_of({"path": "/" + "é" * 100_000})) <= 301
