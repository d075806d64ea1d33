"""OpenAI's operations on realtime sessions: WebRTC calls, and client secrets for browsers."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Path, Router
from pydantic import Field

from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.auth import Caller, mint_temporary_key
from voiceapp.accounts.charges import require_model
from voiceapp.accounts.temporary_keys import LONGEST_S, client_secret
from voiceapp.errors import InvalidParameter
from voiceapp.http.schemas import CleanStr, Schema, is_clean, read_json
from voiceapp.realtime.admission import admit
from voiceapp.realtime.answering import who_answers
from voiceapp.realtime.calls import CallName
from voiceapp.realtime.doors import HELD_OFFER, OPENAI_OFFER
from voiceapp.realtime.forwarding import report_headers
from voiceapp.realtime.handshake import Wire, read_handshake
from voiceapp.realtime.joining import end_call
from voiceapp.realtime.lifetime.resume import Arrival
from voiceapp.realtime.webrtc.exchange import SDP_TYPE, answered, require_offer

router = Router(tags=["OpenAI-compatible"])

FORM_TYPE = "multipart/form-data"
USUAL_S = 600
CALLS = "/v1/realtime/calls"

_FORM = {
    "type": "object",
    "required": ["sdp"],
    "properties": {
        "sdp": {"type": "string", "description": "The SDP offer."},
        "session": {"type": "string", "description": "The session's settings, as JSON."},
    },
}
_OFFER: dict[str, Any] = {
    "parameters": [
        {"in": "query", "name": "model", "description": "A realtime model.", "schema": {"type": "string"}},
        {"in": "query", "name": "intent", "description": "`transcription`.", "schema": {"type": "string"}},
    ],
    "requestBody": {
        "required": True,
        "description": "The offer, sent when all ICE candidates are in it: one audio track and one data channel.",
        "content": {SDP_TYPE: {"schema": {"type": "string"}}, FORM_TYPE: {"schema": _FORM}},
    },
    "responses": {201: {"description": "The SDP answer.", "content": {SDP_TYPE: {"schema": {"type": "string"}}}}},
}


class ExpiresAfter(Schema):
    """Expiry of a client secret."""

    anchor: str = "created_at"
    seconds: Annotated[int, Field(ge=10, le=7200)] = USUAL_S
    """From now; one that would last longer than a temporary key ends with it."""


class ClientSecretBody(Schema):
    """Request for a client secret."""

    expires_after: ExpiresAfter = ExpiresAfter()
    session: dict[str, Any] | None = None
    """Settings of the session, with its model; they travel in the secret."""


class ClientSecret(Schema):
    """A key for a browser, for a little while."""

    value: str
    """`ek_…`: use it in the place of an API key."""
    expires_at: int
    """Unix seconds."""
    session: dict[str, Any]
    """The settings that a session with it begins with."""


@router.post("/realtime/calls", summary="Begin a call over WebRTC", openapi_extra=_OFFER)
async def create_call(request: HttpRequest) -> HttpResponse:
    """Exchange SDP as OpenAI's clients do; events come on the data channel, in OpenAI's current dialect."""
    offer, session = _offer_of(request)
    handshake = read_handshake(
        Wire(
            request.GET.dict(),
            authorization=request.headers.get("Authorization", ""),
            beta=request.headers.get("OpenAI-Beta", ""),
            session=session,
            has_track=True,
        )
    )
    door = HELD_OFFER if handshake.is_older or handshake.listens_only else OPENAI_OFFER
    admitted = await admit(
        request.auth,
        door,
        handshake.model,
        address_of_request(request),
        languages=request.headers.get("Accept-Language", ""),
        variables=handshake.variables,
    )
    answer, there = await answered(offer, Arrival(handshake.open(admitted)), handshake.dialect)
    name = CallName(admitted.call.session_id, admitted.beginning.caller.account_id, there=there)
    where = {
        "Location": f"{CALLS}/{name}",
        "Cache-Control": "no-store",
        **report_headers(admitted.beginning),
    }
    return HttpResponse(answer, status=201, content_type=SDP_TYPE, headers=where)


@router.post("/realtime", summary="Begin a call over WebRTC, as older clients do", openapi_extra=_OFFER)
async def create_call_at_root(request: HttpRequest) -> HttpResponse:
    """The same as a call, at the address that clients of the beta used."""
    return await create_call(request)


@router.post("/realtime/calls/{call_id}/hangup", summary="Hang up a call", response={200: None})
async def hang_up(request: HttpRequest, call_id: Path[CleanStr]) -> HttpResponse:
    """End a call of the key's account, whichever process of this host or service holds it."""
    await end_call(call_id, request.auth)
    return HttpResponse()


@router.post("/realtime/client_secrets", summary="Make a client secret", response=ClientSecret)
async def create_client_secret(request: HttpRequest, body: ClientSecretBody) -> ClientSecret:
    """A key for a browser, with the settings of its session. It opens realtime sessions and nothing else.

    It ends by itself, and at once when its key is revoked.
    """
    caller: Caller = request.auth
    caller.require("realtime")
    session = {"type": "realtime", **(body.session or {})}
    handshake = read_handshake(Wire({}, session=session))
    answerer = await who_answers(caller, "realtime", handshake.model)
    require_model(caller, answerer.named, "realtime")
    shown = answerer.described(handshake.model, handshake.opening, listens_only=handshake.listens_only)
    seconds = min(body.expires_after.seconds, LONGEST_S)
    temporary_key, expires_at = await mint_temporary_key(caller, seconds, realtime_only=True)
    try:
        secret = client_secret(temporary_key, {**session, "model": shown.get("model") or handshake.model})
    except ValueError:
        raise InvalidParameter(
            "The session's settings are too large for a client secret. Send them by session.update.", param="session"
        ) from None
    return ClientSecret(value=secret, expires_at=expires_at, session={**shown, "expires_at": expires_at})


def _offer_of(request: HttpRequest) -> tuple[bytes, dict[str, Any]]:
    """The SDP offer and the session's settings in the body.

    Raises:
        InvalidParameter: if the settings are not a JSON object, or the offer is missing.
        MediaTypeRefused: if the body is neither an offer nor a form.
    """
    if request.content_type != FORM_TYPE:
        require_offer(request)
        return request.body, {}
    offer = request.POST.get("sdp") or _file(request, "sdp")
    if not offer:
        raise InvalidParameter("The field 'sdp' is missing.", param="sdp")
    given = request.POST.get("session") or _file(request, "session") or "{}"
    try:
        session = read_json(given)
        clean = is_clean(session)
    except (ValueError, RecursionError):
        raise InvalidParameter("session is not JSON.", param="session") from None
    if not clean:
        raise InvalidParameter("session holds a NUL character or half of a surrogate pair.", param="session")
    if not isinstance(session, dict):
        raise InvalidParameter("session must be an object.", param="session")
    return offer.encode(), {"type": "realtime", **session}


def _file(request: HttpRequest, name: str) -> str:
    """A part of the form that its sender gave a file's name."""
    part = request.FILES.get(name)
    return part.read().decode("utf-8", "replace") if part else ""
