"""The voice page and what it needs to know before it opens its socket.

The socket itself belongs to `voiceapp.realtime`; it knows people by their login, and guests by the cookie that these
views give them.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from voiceapp import ice
from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.auth import Caller, caller_from_user, guest_caller
from voiceapp.accounts.guests import guest_of, new_guest, remember_guest
from voiceapp.accounts.limits import session_limits
from voiceapp.engines.catalogue import catalogue
from voiceapp.errors import AccessDenied, Throttled
from voiceapp.health import readiness

SOCKET_PATH = "/voice/socket"
WEBRTC_PATH = "/voice/webrtc"
STATIC_DIR = settings.BASE_DIR / "static"
MODULES = sorted(
    path.relative_to(STATIC_DIR).as_posix()
    for path in Path(STATIC_DIR, "voice").rglob("*.js")
    if not path.name.endswith(".worklet.js")
)
"""The page's modules, so that the browser fetches them all at once instead of import by import."""


async def _may_talk(request: HttpRequest) -> bool:
    """Whether PUBLIC_PAGE lets this visitor talk.

    Raises:
        Http404: there is no page here.
    """
    if settings.PUBLIC_PAGE == "off":
        raise Http404
    return settings.PUBLIC_PAGE == "guest" or bool((await request.auser()).is_authenticated)


@require_safe
@never_cache
async def voice(request: HttpRequest) -> HttpResponseBase:
    """The voice page."""
    if not await _may_talk(request):
        return redirect_to_login(request.get_full_path())
    is_signed_in = (await request.auser()).is_authenticated
    response = render(request, "voice/voice.html", {"modules": MODULES, "is_signed_in": is_signed_in})
    response["Permissions-Policy"] = "microphone=(self), speaker-selection=(self), camera=(), geolocation=()"
    return response


async def _caller(request: HttpRequest, guest: str) -> Caller:
    """Whom the doors of the page will take this visitor for: the one who is signed in, or else this guest.

    Raises:
        AccessDenied: for nobody who may talk.
    """
    user = await request.auser()
    if user.is_authenticated:
        return await caller_from_user(user)
    return await guest_caller(guest)


async def _refusal(request: HttpRequest, guest: str) -> list[dict[str, str]]:
    """Why the socket would refuse this visitor now: the browser cannot see the answer to a refused handshake."""
    try:
        session_limits().check(await _caller(request, guest), address_of_request(request))
    except Throttled as full:
        return [{"code": "at_capacity", "message": full.message}]
    except AccessDenied as denied:
        return [{"code": "not_allowed", "message": denied.message}]
    return []


def _transports(provider: object) -> list[str]:
    """By which transports a browser reaches this model."""
    if hasattr(provider, "relay_offer"):
        return ["webrtc"]
    return ["webrtc", "websocket"] if ice.available() else ["websocket"]


async def _ice_servers(request: HttpRequest, guest: str, ttl_s: int) -> list[dict[str, Any]]:
    """What the browser's peer connection is told; credentials only for somebody who may talk."""
    try:
        caller = await _caller(request, guest)
    except AccessDenied:
        return []
    return list(ice.ice_servers(caller.label, ttl_s))


@require_safe
@never_cache
async def config(request: HttpRequest) -> HttpResponse:
    """What the page may choose from, and whether a conversation can start now.

    Asked before every conversation: it also leaves the cookie by which the socket knows a guest again.
    401 when the visitor has to sign in first.
    """
    if not await _may_talk(request):
        return JsonResponse({"code": "signed_out", "message": "Sign in to talk."}, status=401)
    user = await request.auser()
    is_signed_in = bool(user.is_authenticated)
    guest = guest_of(request.COOKIES) or new_guest()
    reasons = [asdict(reason) for reason in await readiness()] or await _refusal(request, guest)
    models = catalogue()
    cards = models.names("realtime")
    voices = {voice.name: voice for card in cards for voice in models.provider(card).voices}
    limit_s = settings.SESSION_LIFETIME_S if is_signed_in else settings.GUEST_SESSION_S
    response = JsonResponse(
        {
            "models": [
                {"name": card.name, "title": card.title, "transports": _transports(models.provider(card))}
                for card in cards
            ],
            "voices": [asdict(voice) for voice in voices.values()],
            "default_model": cards[0].name if cards else "",
            "default_voice": settings.DEFAULT_VOICE,
            "ready": not reasons,
            "reasons": reasons,
            "signed_in": is_signed_in,
            "guest": not is_signed_in,
            "socket_path": SOCKET_PATH,
            "webrtc_path": WEBRTC_PATH,
            "csrf_token": get_token(request),
            "ice_servers": await _ice_servers(request, guest, limit_s),
            "session_limit_s": limit_s,
        }
    )
    if not is_signed_in:
        remember_guest(response, guest)
    return response
