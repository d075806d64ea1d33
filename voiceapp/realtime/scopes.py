"""The ASGI scope of a WebSocket, and the refusal of its handshake."""

from __future__ import annotations

import logging
from urllib.parse import parse_qs

from voiceapp.formats import one_line
from voiceapp.http.error_responses import error_response_of
from voiceapp.http.refusals import Scope, Send, refuse, request_id_of

logger = logging.getLogger(__name__)


async def refuse_handshake(scope: Scope, send: Send, error: Exception) -> None:
    """Close it with a status, a code and a sentence; an unexpected error is logged whole."""
    response = error_response_of(error)
    if response.is_fault:
        logger.error(
            "socket %s: the handshake failed (%s)", one_line(scope["path"]), request_id_of(scope), exc_info=error
        )
    headers = [(name.lower().encode(), value.encode()) for name, value in response.headers.items()]
    await refuse(scope, send, response.status, response.code, response.message, headers)


def query_of(scope: Scope) -> dict[str, str]:
    parameters = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return {name: values[0] for name, values in parameters.items()}


def header_of(scope: Scope, name: bytes) -> str:
    """The first header of a name, which is in lower case; empty when there is none."""
    return next((value.decode("latin-1") for key, value in scope.get("headers", ()) if key.lower() == name), "")
