"""The SDP exchange: from an HTTP request with an offer to the HTTP response with the answer."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from voiceapp.accounts.auth import Caller
from voiceapp.http.error_responses import MediaTypeRefused
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.realtime.doors import Door
from voiceapp.realtime.forwarding import forward, report_headers
from voiceapp.realtime.lifetime.resume import Arrival, arrive_by_request
from voiceapp.realtime.webrtc import peers, sdp

SDP_TYPE = "application/sdp"


def require_offer(request: HttpRequest) -> None:
    """Check the media type of an SDP offer.

    Raises:
        MediaTypeRefused: if the body is not an offer.
    """
    if request.content_type != SDP_TYPE:
        raise MediaTypeRefused(f"Send the offer as {SDP_TYPE}.")


async def exchange(request: HttpRequest, caller: Caller, door: Door, *, session_key: str = "") -> HttpResponse:
    """Answer the offer in a request's body; `session_key` is that of the login by which the caller is known.

    Raises:
        RequestRefused: another kind of body, an offer that cannot be read, or a caller who is not admitted.
        EngineUnavailable: the server cannot talk over WebRTC now, or the service that the offer is for does not.
    """
    require_offer(request)
    arrival = await arrive_by_request(request, caller, door, request.GET.get("model", ""), session_key=session_key)
    answer, _ = await answered(request.body, arrival)
    headers = {"Cache-Control": "no-store", **report_headers(arrival.admitted.beginning)}
    return HttpResponse(answer, content_type=SDP_TYPE, headers=headers)


async def answered(body: bytes, arrival: Arrival, dialect: Dialect = OWN) -> tuple[str, str]:
    """The SDP answer to an offer, and the name of the call at the service that holds it; empty: this server does.

    Raises:
        InvalidParameter: if the offer cannot be read.
        EngineUnavailable: the server cannot talk over WebRTC now, or the service that the offer is for does not.
    """
    offer = await sdp.read_offer(body, allow_private=settings.RTC_ALLOW_PRIVATE)
    admitted = arrival.admitted
    if not admitted.is_passed_on:
        return await peers.answer(offer, arrival, dialect), ""
    provider, model, opening = admitted.provider, admitted.beginning.model, admitted.call.opening
    if dialect is OWN:
        return await forward(admitted, lambda: provider.relay_offer(offer, model)), ""
    return await forward(admitted, lambda: provider.relay_call(offer, model, opening))
