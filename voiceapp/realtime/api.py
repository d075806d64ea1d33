"""The WebRTC operation of programs: an offer in, an answer out, or a grant for an AOQ session."""

from __future__ import annotations

from typing import Annotated, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from voiceapp.realtime.aoq.allocation import allocate, wants_grant
from voiceapp.realtime.doors import API_GRANT, API_OFFER
from voiceapp.realtime.webrtc.exchange import SDP_TYPE, exchange

router = Router(tags=["Realtime"])

Model = Annotated[str, Query(description="A realtime model; it has to be named.", example="voice")]
TimeZone = Annotated[str, Query(description="IANA name of the caller's time zone.", example="Europe/Vienna")]

_GRANT: dict[str, Any] = {
    "type": "object",
    "required": [
        "sid",
        "aoqTokenForClient",
        "clientRelayEndpoints",
        "clientRelayCertFingerprint",
        "sidExpiresInSecs",
        "extraInfo",
    ],
    "properties": {
        "sid": {"type": "string"},
        "aoqTokenForClient": {"type": "string"},
        "clientRelayEndpoints": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["endpoint", "port"],
                "properties": {
                    "endpoint": {"type": "string"},
                    "port": {"type": "integer"},
                    "route_index": {"type": "integer"},
                },
            },
        },
        "clientRelayCertFingerprint": {"type": "string"},
        "sidExpiresInSecs": {"type": "integer"},
        "extraInfo": {"type": "object", "properties": {"workspaceIdHash": {"type": "string"}}},
    },
}
_CLIENT_IP = {"type": "object", "properties": {"clientIp": {"type": "string", "example": "203.0.113.9"}}}
_DESCRIPTION: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": settings.AOQ_TRANSPORT_HEADER,
            "description": "`moq` asks for a grant in the place of an SDP answer.",
            "schema": {"type": "string"},
        }
    ],
    "requestBody": {
        "required": False,
        "description": "The offer, sent when all ICE candidates are in it: one audio track and one data channel. For a "
        "grant, nothing, or the Internet address by which relays are chosen.",
        "content": {SDP_TYPE: {"schema": {"type": "string"}}, "application/json": {"schema": _CLIENT_IP}},
    },
    "responses": {
        200: {
            "description": "The SDP answer, or the grant.",
            "content": {SDP_TYPE: {"schema": {"type": "string"}}, "application/json": {"schema": _GRANT}},
        }
    },
}


@router.post("/realtime", summary="Begin a conversation over WebRTC or AOQ", openapi_extra=_DESCRIPTION)
async def offer(request: HttpRequest, model: Model = "", time_zone: TimeZone = "") -> HttpResponse:
    """Exchange SDP: apply the answer and talk.

    Events are those of the WebSocket, on a data channel with any label, opened by either side; audio comes and goes on
    the track. The conversation begins with `session.created`; sound sent before is dropped.

    With the header for it, the response is a grant for one AOQ session instead (Media over QUIC): connect to one of its
    relays.
    """
    if wants_grant(request):
        return await allocate(request, request.auth, API_GRANT)
    return await exchange(request, request.auth, API_OFFER)
