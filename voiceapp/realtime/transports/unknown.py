"""The answer to a WebSocket on a path that is not one of ours."""

from __future__ import annotations

from voiceapp.answers import Receive, Scope, Send, refuse


async def unknown_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse the handshake with 404 instead of an exception."""
    await receive()
    await refuse(scope, send, 404, "NotFound", "There is no WebSocket on this path.")
