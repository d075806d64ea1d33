"""Secrets never reach the log."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys

import pytest

from voiceapp.server.logs import MaskSecrets, mask

from .process import ROOT


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
