"""From an HTTP request with an offer to an answer: who may call, with which model, and who answers."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from voiceapp import ice
from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.limits import session_limits
from voiceapp.accounts.metering import require_model
from voiceapp.drain import drain_event
from voiceapp.engines import opus
from voiceapp.engines.catalogue import catalogue
from voiceapp.errors import EngineUnavailable, InvalidParameter
from voiceapp.failures import MediaTypeRefused
from voiceapp.formats import identifier
from voiceapp.health import readiness
from voiceapp.realtime import peers, sdp
from voiceapp.realtime.elsewhere import held_elsewhere
from voiceapp.realtime.models import Door
from voiceapp.realtime.opening import call_of, limits_of
from voiceapp.realtime.records import Beginning, Recorder, record_relayed

logger = logging.getLogger(__name__)

SDP_TYPE = "application/sdp"
RELAYED_S = 600
"""So long a call that was passed on counts as open: its end is not seen here. A guest's counts for as long as
guests may talk."""


def require_offer(request: HttpRequest) -> None:
    """Raises MediaTypeRefused: the body is none."""
    if request.content_type != SDP_TYPE:
        raise MediaTypeRefused(f"Send the offer as {SDP_TYPE}.")


async def take_call(
    request: HttpRequest, caller: Caller, *, time_zone: str = "", session_key: str = ""
) -> HttpResponse:
    """Answer the offer in a request's body for a caller who is known; `session_key` is that of their login.

    Raises:
        RequestRefused: another kind of body, no model, one the caller may not use, no room, an offer that is no good.
        EngineUnavailable: the server cannot talk over WebRTC now.
    """
    caller.require("realtime")
    require_offer(request)
    name = request.GET.get("model", "")
    if not name:
        raise InvalidParameter("The query parameter 'model' is missing.", param="model")
    card = catalogue().get(name, "realtime")
    require_model(caller, name, card.kind)
    if drain_event().begun:
        raise EngineUnavailable("The server is stopping; connect again in a moment.")
    address = address_of_request(request)
    session_limits().check(caller, address)
    offer = await sdp.read_offer(request.body, allow_private=settings.RTC_ALLOW_PRIVATE)
    provider = catalogue().provider(card)
    if hasattr(provider, "relay_offer"):  # media flows directly between the caller and the service elsewhere
        beginning = Beginning(identifier("sess"), caller, name, str(Door.RELAYED), address)
        return _answer(await _pass_on(offer, provider, beginning))
    if not ice.available():
        reason = "libopus is missing" if settings.RTC_ENABLED else "it is switched off"
        raise EngineUnavailable(f"This server does not talk over WebRTC: {reason}. Use a WebSocket.")
    if reasons := await readiness():
        raise EngineUnavailable(reasons[0].message)
    session_id = identifier("sess")
    call = replace(call_of(session_id, name, time_zone), input_rate_hz=opus.DECODED_RATE_HZ)
    recorder = Recorder(Beginning(session_id, caller, name, str(Door.WEBRTC), address))
    seat = session_limits().admit(caller, address, await held_elsewhere(caller))
    limits = limits_of(seat, caller, session_key)
    return _answer(await peers.answer(offer, provider, call, recorder, seat, limits))


async def _pass_on(offer: str, provider: Any, beginning: Beginning) -> str:
    """The answer of the service elsewhere; the call holds a seat from now on."""
    caller = beginning.caller
    seat = session_limits().admit(caller, beginning.client_address, await held_elsewhere(caller))
    try:
        text: str = await provider.relay_offer(offer, beginning.model)
        await record_relayed(beginning)
    except BaseException:
        seat.release()
        raise
    held_s = seat.lifetime_s if caller.is_guest else min(seat.lifetime_s, RELAYED_S)
    asyncio.get_running_loop().call_later(held_s, seat.release)
    return text


def _answer(text: str) -> HttpResponse:
    return HttpResponse(text, content_type=SDP_TYPE, headers={"Cache-Control": "no-store"})
