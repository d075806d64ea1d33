"""The log: secrets are masked on the way out; each request and socket gets one line, without its query."""

from __future__ import annotations

import atexit
import json
import logging
import re
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from django.conf import settings

from voiceapp import tracing
from voiceapp.formats import Facts, moment, one_line
from voiceapp.http.refusals import Scope, request_id_of

MASK = "***"
METHOD_LENGTH = 20
PATH_LENGTH = 300
"""Characters of a request's path that its line of the log shows."""

_SECRETS = (
    # Our keys, temporary keys and webhook secrets: the prefix stays, it tells which kind leaked.
    (re.compile(r"(?<![A-Za-z0-9])(sk-|st-|whsec_)[A-Za-z0-9_\-+/=]{8,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(bearer\s+)[^\s\"',;]+"), rf"\1{MASK}"),
    (re.compile(r"(aoqToken\w*[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}]+"), rf"\1{MASK}"),
    (re.compile(r"(ice-pwd\s*[:=]\s*)[^\s\"',;\\]+"), rf"\1{MASK}"),
    (re.compile(r"(/api/v1/files/)[^/\s\"']+"), rf"\1{MASK}"),
    (
        re.compile(r"(?i)([?&](?:api_?key|access_?token|token|secret|password|key|jwt|resume|site_token)=)[^\s&\"']+"),
        rf"\1{MASK}",
    ),
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


class JsonLines(logging.Formatter):
    """One JSON object a line, with the ids of the request and the session that it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        facts = [fact for fact in record.args or () if isinstance(fact, Facts)]
        line = {
            "time": moment(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "request_id", "") or tracing.request_id.get(),
            "session_id": tracing.session_id.get(),
            **{name: value for fact in facts for name, value in fact.fields.items()},
            "exception": record.exc_text or (self.formatException(record.exc_info) if record.exc_info else ""),
        }
        return json.dumps({name: value for name, value in line.items() if value != ""}, ensure_ascii=False, default=str)


def sentry() -> logging.Handler:
    """Return a handler that reports errors to SENTRY_DSN: masked, and without values of variables or of requests."""
    import sentry_sdk
    from sentry_sdk.integrations.logging import EventHandler

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        release=settings.VERSION,
        default_integrations=False,
        auto_enabling_integrations=False,
        send_default_pii=False,
        include_local_variables=False,
        include_source_context=False,
        max_breadcrumbs=0,
        auto_session_tracking=False,
        send_client_reports=False,
        before_send=_for_sentry,
    )
    atexit.register(sentry_sdk.flush, 2.0)
    return EventHandler()


def _for_sentry(event: Any, hint: Any) -> Any:
    event.get("logentry", {}).pop("params", None)
    kept = {name: value for name, value in event.items() if name not in ("extra", "breadcrumbs", "user", "request")}
    return _masked(kept | {"tags": {"request_id": tracing.request_id.get(), "session_id": tracing.session_id.get()}})


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _masked(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(held) for held in value]
    return mask(value) if isinstance(value, str) else value


class DjangoRecords(logging.Filter):
    """Filter of Django's records about requests that keeps what an operator should know, on one line each.

    A refused request (an unknown host, a body that cannot be read) and a page for which the database or the disk is
    missing are a WARNING without traceback. A response that only reports such a status is left out: its cause is logged
    where it is known. An unexpected exception stays an ERROR with its traceback.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "django.request":
            return _is_news(record)
        if record.name.startswith("django.security."):
            _warn(record, record.getMessage())
        return True


def _is_news(record: logging.LogRecord) -> bool:
    from voiceapp.http.error_responses import error_response_of  # needs what logging is configured before

    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, Exception):
        return False
    response = error_response_of(error)
    if response.is_fault:
        record.msg, record.args = one_line(record.getMessage()), ()
    else:
        _warn(record, f"{record.getMessage()}: {error}")
    return True


def _warn(record: logging.LogRecord, message: str) -> None:
    record.levelno, record.levelname = logging.WARNING, "WARNING"
    record.msg, record.args = one_line(message), ()
    record.exc_info = record.exc_text = None


def log_request(scope: Scope, status: int, started: float) -> None:
    """One line for an HTTP request; `started` is `time.monotonic()` at its beginning."""
    level = logging.DEBUG if scope["path"] in ("/healthz", "/readyz") else logging.INFO
    access_logger.log(
        level,
        "%s %s %d %s %.0f ms %s",
        one_line(scope["method"], METHOD_LENGTH),
        path_of(scope),
        status,
        client_of(scope),
        (time.monotonic() - started) * 1000,
        request_id_of(scope),
        extra={"request_id": request_id_of(scope)},
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
        extra={"request_id": request_id_of(scope)},
    )


def path_of(scope: Scope) -> str:
    """The path as an address holds it: whatever it holds, it stays one word on one line, and no long one."""
    path = quote(scope["path"][:PATH_LENGTH], safe="/:?@!$&'()*+,;=~")
    return path if len(path) <= PATH_LENGTH >= len(scope["path"]) else f"{path[:PATH_LENGTH]}…"


def client_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "-"
