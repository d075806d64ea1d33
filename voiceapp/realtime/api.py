"""The WebRTC operations of programs: an offer in, an answer out, or a grant for an AOQ connection."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from voiceapp.errors import InvalidParameter
from voiceapp.realtime.aoq.allocation import TRANSPORT_HEADERS, allocate, wants_grant
from voiceapp.realtime.doors import API_GRANT, API_OFFER, TASK_GRANT
from voiceapp.realtime.forwarding import Report, take_report
from voiceapp.realtime.webrtc.exchange import SDP_TYPE, exchange

router = Router(tags=["Realtime"])

Model = Annotated[str, Query(description="A realtime model; it has to be named.", example="voice")]
TaskModel = Annotated[str, Query(description="A recognition model; it has to be named.", example="moonshine-tiny-en")]
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
_JSON_GRANT = {"application/json": {"schema": _GRANT}}
_DESCRIPTION: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": TRANSPORT_HEADERS[0],
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
            "content": {SDP_TYPE: {"schema": {"type": "string"}}, **_JSON_GRANT},
        }
    },
}
_TASK_DESCRIPTION: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": TRANSPORT_HEADERS[0],
            "description": "Has to be `moq`.",
            "required": True,
            "x-shown-value": "moq",
            "schema": {"type": "string"},
        }
    ],
    "requestBody": {
        "required": False,
        "description": "Nothing, or the Internet address by which relays are chosen.",
        "content": {"application/json": {"schema": _CLIENT_IP}},
    },
    "responses": {200: {"description": "The grant.", "content": _JSON_GRANT}},
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


@router.post("/inference", summary="Recognise speech over AOQ", openapi_extra=_TASK_DESCRIPTION)
async def task_grant(request: HttpRequest, model: TaskModel = "") -> HttpResponse:
    """Issue a grant for a connection that carries tasks of recognition.

    The data track carries the messages of `/api-ws/v1/inference`, from `run-task` to `task-finished`; what is
    recognised comes on the audio track.
    """
    if not wants_grant(request):
        raise InvalidParameter(
            f"Recognition is reached by AOQ, with the header {TRANSPORT_HEADERS[0]}: moq, or by the WebSocket "
            "/api-ws/v1/inference. It takes no SDP offer."
        )
    return await allocate(request, request.auth, TASK_GRANT)


ReportName = Annotated[str, Path(description="As the header `X-Session-Report` gave it.", max_length=100)]


@router.post("/sessions/{name}", summary="Report a forwarded session", response={204: None})
async def report(request: HttpRequest, name: ReportName, body: Report) -> HttpResponse:
    """Say that a session with a model of another service is connected, and when it has ended.

    The address comes in the header `X-Session-Report` of the SDP answer or the grant. A session that is reported ended
    gives its place for open conversations back at once. One that was reported connected, and then nothing for 150
    seconds, counts as ended. A report may be sent twice.
    """
    await take_report(request.auth, name, body)
    return HttpResponse(status=204)
