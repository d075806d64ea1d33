"""The WebRTC operation of programs: an offer in, an answer out."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from voiceapp.realtime.calls import SDP_TYPE, take_call

router = Router(tags=["Realtime"])

Model = Annotated[str, Query(description="A realtime model; it has to be named.", example="voice")]

_DESCRIPTION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The offer, sent when all ICE candidates are in it: one audio track and one data channel.",
        "content": {SDP_TYPE: {"schema": {"type": "string"}}},
    },
    "responses": {200: {"description": "The answer.", "content": {SDP_TYPE: {"schema": {"type": "string"}}}}},
}


@router.post("/realtime", summary="Begin a conversation over WebRTC", openapi_extra=_DESCRIPTION)
async def offer(request: HttpRequest, model: Model = "") -> HttpResponse:
    """Exchange SDP: apply the answer and talk.

    Events are those of the WebSocket, on a data channel with any label, opened by either side; audio comes and goes on
    the track. The conversation begins with `session.created`; sound sent before is dropped.
    """
    return await take_call(request, request.auth)
