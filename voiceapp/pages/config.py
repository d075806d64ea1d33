"""Facts that the voice page needs before it opens its socket.

The socket itself belongs to `voiceapp.realtime`; it knows people by their login, and guests by the cookie that they are
given here, or within another site by the token of its page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.utils.crypto import salted_hmac
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from voiceapp import ice
from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.caller import Caller
from voiceapp.accounts.guests import guest_of, new_guest, remember_guest
from voiceapp.accounts.page import SITE_PARAMETER, SignInRequired, may_visit, page_caller, site_caller
from voiceapp.accounts.seats import CONCURRENCY, seats
from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.models.providers import provider_of, recognized_languages
from voiceapp.errors import AccessDenied, EngineError, NotFound, Throttled, VoiceError
from voiceapp.health import NotReadyReason, readiness, reason_of
from voiceapp.http.error_responses import error_response_of
from voiceapp.pages.page_models import described, page_cards, visited_agent
from voiceapp.relays import Relay, open_relays

SOCKET_PATH = "/voice/socket"
WEBRTC_PATH = "/voice/webrtc"
AOQ_PATH = "/voice/aoq"
SAMPLES_PATH = "/voice/samples/"


def is_open_to(user: Any) -> bool:
    """Return whether this visitor may use the page without signing in first.

    Raises:
        Http404: the page is switched off.
    """
    try:
        return may_visit(user)
    except NotFound as switched_off:
        raise Http404 from switched_off


def signed_out() -> JsonResponse:
    return JsonResponse({"code": "signed_out", "message": SignInRequired().message}, status=401)


NOT_YOURS = "The operator of this server has to see to it."
"""Sentence for a visitor in the place of an operator's remedy."""


def _shown(reason: NotReadyReason, user: Any) -> dict[str, str]:
    """A reason in JSON; remedies name commands and settings, and are for operators, in development for everyone."""
    if settings.DEBUG or user.is_staff:
        message = reason.for_operators
    else:
        message = f"{reason.message} {NOT_YOURS}" if reason.remedy else reason.message
    return {"code": reason.code, "message": message}


async def _prospects(
    request: HttpRequest,
    user: Any,
    find_caller: Callable[[], Awaitable[Caller]],
    limit_s: int,
    cards: Sequence[ModelCard],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return why a session would be refused now, which the browser cannot read from a refused handshake, and the
    ICE servers of a visitor who may talk. A page that `waits` is given its place in the queue."""
    if reasons := await readiness() or _unable(cards):
        return [_shown(reason, user) for reason in reasons], []
    try:
        caller = await find_caller()
        servers = ice.ice_servers(caller.label, limit_s)
        await seats().check(caller, address_of_request(request), runs_here=not cards or cards[0].runs_here)
    except Throttled as full:
        # Room for one more conversation comes by itself; a guest's hour does not pass while they wait in line.
        code = "at_capacity" if full.code == CONCURRENCY else "guest_limit"
        position = seats().wait(caller, address_of_request(request)) if "waits" in request.GET else 0
        return [{"code": code, "message": full.message, **({"position": position} if position else {})}], servers
    except AccessDenied as denied:
        return [{"code": "not_allowed", "message": denied.message}], []
    return [], servers


def _unable(cards: Sequence[ModelCard]) -> list[NotReadyReason]:
    """Return why none of these models can serve; empty when one can."""
    found: list[NotReadyReason] = []
    for card in cards:
        try:
            provider_of(card).check()
        except EngineError as error:
            found.append(reason_of(error))
    return found[:1] if len(found) == len(cards) else []


def _digest(relays: list[Relay]) -> str:
    """Changes when a relay comes, goes or is started again: what a page remembers of those before counts no more."""
    return salted_hmac("voiceapp.pages.relays", repr(sorted(map(repr, relays)))).hexdigest()[:16] if relays else ""


@require_safe
@never_cache
async def config(request: HttpRequest) -> HttpResponse:
    """Return what the page may choose from, and whether a conversation can start now.

    Asked before every conversation: it also leaves the cookie by which the socket knows a guest again.
    401 when the visitor has to sign in first.
    """
    user, guest = await request.auser(), guest_of(request.COOKIES) or new_guest()
    token = request.GET.get(SITE_PARAMETER)
    if token is None and not is_open_to(user):
        return signed_out()
    if token is not None:
        user = AnonymousUser()  # who is signed in here does not count within another site
    is_signed_in = bool(user.is_authenticated)
    limit_s = settings.SESSION_LIFETIME_S if is_signed_in else settings.GUEST_SESSION_S
    if token is not None:
        try:
            limit_s = seats().lifetime_s(await site_caller(token))
        except VoiceError as error:
            refusal = error_response_of(error)
            return JsonResponse({"code": refusal.code, "message": refusal.message}, status=refusal.status)
    named = request.GET.get("agent", "")[:100]
    cards = page_cards(named)
    reasons, ice_servers = await _prospects(
        request, user, lambda: page_caller(user, guest) if token is None else site_caller(token), limit_s, cards
    )
    relays = await open_relays()
    agent = await visited_agent(user, named)
    voices = {voice.name: voice for card in cards for voice in provider_of(card).voices}
    response = JsonResponse(
        {
            "models": [described(card, agent, has_relays=bool(relays)) for card in cards],
            "voices": [asdict(voice) for voice in voices.values()],
            "languages": recognized_languages(),
            "default_model": cards[0].name if cards else "",
            "default_voice": agent.opening.get("voice") or (provider_of(cards[0]).default_voice if cards else ""),
            "ready": not reasons,
            "reasons": reasons,
            "signed_in": is_signed_in,
            "guest": not is_signed_in,
            "visitor": salted_hmac("voiceapp.pages.visitor", str(user.pk)).hexdigest()[:16] if is_signed_in else "",
            "socket_path": SOCKET_PATH,
            "webrtc_path": WEBRTC_PATH,
            "aoq_path": AOQ_PATH,
            "samples_path": SAMPLES_PATH,
            "aoq_relays": _digest(relays),
            "csrf_token": get_token(request),
            "ice_servers": ice_servers,
            "session_limit_s": limit_s,
            "query": {} if token is None else {SITE_PARAMETER: token},
        }
    )
    if not is_signed_in and token is None:
        remember_guest(response, guest)
    return response
