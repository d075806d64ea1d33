"""Secrets never reach the log."""

from __future__ import annotations

import io
import logging

import pytest

from voiceapp.server.logs import MaskSecrets, mask


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
