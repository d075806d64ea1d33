"""What a caller is told when a service ends a session, and the conversation goes on in another one."""

from __future__ import annotations

from voiceapp.formats import identifier
from voiceapp.protocol import events as ev

MOST_LOSSES = 3
"""Sessions lost in a row without a response or a transcript between them."""
LOST = "upstream_connection_lost"
"""Code of the error event about it."""
_NOTHING_SAID = {"output": [], "usage": None, "conversation_id": None, "modalities": ["text", "audio"], "voice": ""}
"""Of a response whose end the service did not tell."""


def lost() -> ev.ErrorEvent:
    """The connection was lost while the caller waited for something, or spoke."""
    message = "The connection to the service that runs this model was lost; the conversation goes on."
    return ev.ErrorEvent(event_id=identifier("event"), code=LOST, message=message, error_type="server_error")


def failed(response_id: str) -> ev.ResponseDone:
    """The end of a response that was under way."""
    about = {"type": "failed", "reason": LOST, "error": {"type": "server_error", "code": LOST}}
    ended = {"id": response_id, "object": "realtime.response", "status": "failed", "status_details": about}
    return ev.ResponseDone(event_id=identifier("event"), response={**_NOTHING_SAID, **ended})
