"""What the log may say: secrets are masked on the way out; each request and socket gets one line, without its query."""

from __future__ import annotations

import logging
import re
import time
from urllib.parse import quote

from voiceapp.answers import Scope, request_id_of

MASK = "***"

_SECRETS = (
    # Our keys, temporary keys and webhook secrets: the prefix stays, it tells which kind leaked.
    (re.compile(r"(?<![A-Za-z0-9])(sk-|st-|whsec_)[A-Za-z0-9_\-+/=]{8,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(bearer\s+)[^\s\"',;]+"), rf"\1{MASK}"),
    (re.compile(r"(aoqToken\w*[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}]+"), rf"\1{MASK}"),
    (re.compile(r"(ice-pwd\s*[:=]\s*)[^\s\"',;\\]+"), rf"\1{MASK}"),
    (re.compile(r"(/api/v1/files/)[^/\s\"']+"), rf"\1{MASK}"),
    (re.compile(r"(?i)([?&](?:api_?key|access_?token|token|secret|password|key)=)[^\s&\"']+"), rf"\1{MASK}"),
)

access_logger = logging.getLogger("voiceapp.access")


def mask(text: str) -> str:
    """The text with everything that looks like a secret replaced."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class MaskSecrets(logging.Filter):
    """Masks secrets in a record's message, arguments and traceback; lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        masked = mask(message)
        if masked != message:
            record.msg, record.args = masked, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = mask(record.exc_text)
        return True


def log_request(scope: Scope, status: int, started: float) -> None:
    """One line for an HTTP request; `started` is `time.monotonic()` at its beginning."""
    level = logging.DEBUG if scope["path"] in ("/healthz", "/readyz") else logging.INFO
    access_logger.log(
        level,
        "%s %s %d %s %.0f ms %s",
        scope["method"],
        path_of(scope),
        status,
        client_of(scope),
        (time.monotonic() - started) * 1000,
        request_id_of(scope),
    )


def log_socket(scope: Scope, outcome: int | None, started: float) -> None:
    """One line for a WebSocket at its end: the HTTP status of a refused handshake, or the close code."""
    access_logger.info(
        "WS %s %s %s %.1f s %s",
        path_of(scope),
        outcome,
        client_of(scope),
        time.monotonic() - started,
        request_id_of(scope),
    )


def path_of(scope: Scope) -> str:
    """The path as an address holds it: whoever wrote it, it stays one word on one line."""
    return quote(scope["path"], safe="/:?@!$&'()*+,;=~")


def client_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "-"
