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
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac
from django.utils.http import urlencode
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from voiceapp import ice
from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.guests import guest_of, new_guest, remember_guest
from voiceapp.accounts.page import SignInRequired, may_visit, page_caller
from voiceapp.accounts.seats import CONCURRENCY, seats
from voiceapp.engines.models.providers import provider_of, recognized_languages
from voiceapp.errors import AccessDenied, NotFound, Throttled, VoiceError
from voiceapp.health import NotReadyReason, readiness
from voiceapp.http.error_responses import error_response_of
from voiceapp.pages.languages import page_words
from voiceapp.pages.page_models import described, has_small_model, is_multilingual, page_cards, visited_agent
from voiceapp.pages.privacy import facts
from voiceapp.pages.voice_samples import MEDIA_TYPE, voice_samples
from voiceapp.relays import Relay, open_relays

SOCKET_PATH = "/voice/socket"
WEBRTC_PATH = "/voice/webrtc"
AOQ_PATH = "/voice/aoq"
SAMPLES_PATH = "/voice/samples/"
SAMPLE_KEPT_S = 3600
"""Seconds for which a browser plays a sample again without asking."""
STATIC_DIR = settings.BASE_DIR / "static"
MODULES = sorted(
    path.relative_to(STATIC_DIR).as_posix()
    for path in Path(STATIC_DIR, "voice").rglob("*.js")
    if not path.name.endswith((".worklet.js", "theme.js")) and path.parent.name != "vendor"
)
"""The page's modules, so that the browser fetches them all at once instead of import by import. What is vendored is
fetched when it is needed."""


@require_safe
@never_cache
async def voice(request: HttpRequest) -> HttpResponseBase:
    """The voice page."""
    return await _page(request, "")


@require_safe
@never_cache
async def agent(request: HttpRequest, name: str) -> HttpResponseBase:
    """The voice page of one agent, or with `?version=draft` of its draft."""
    version = request.GET.get("version", "")[:20]
    return await _page(request, f"{name}@{version}" if version else name)


async def _page(request: HttpRequest, named: str) -> HttpResponseBase:
    user = await request.auser()
    if not _is_open_to(user):
        return redirect_to_login(request.get_full_path())
    agent = await visited_agent(user, named)
    context = {
        "agent": agent,
        "config_url": reverse("voice-config") + (f"?{urlencode({'agent': named})}" if named else ""),
        "modules": MODULES,
        "is_signed_in": user.is_authenticated,
        "privacy": facts(agent),
        "has_small_model": has_small_model(agent),
        "words": page_words(get_language()),
        "tries": _tries(is_multilingual(agent)),
        "is_multilingual": is_multilingual(agent),
    }
    response = render(request, "voice/voice.html", context)
    response._csp_update = {"connect-src": [relay.origin for relay in await open_relays()]}
    response["Permissions-Policy"] = "microphone=(self), speaker-selection=(self), camera=(), geolocation=()"
    return response


@require_safe
@never_cache
async def privacy(request: HttpRequest) -> HttpResponseBase:
    """Show what this server keeps of a conversation; people may read it before they sign in."""
    if settings.PUBLIC_PAGE == "off":
        raise Http404
    agent = await visited_agent(await request.auser(), "")
    return render(request, "voice/privacy.html", {"privacy": facts(agent)})


def _is_open_to(user: Any) -> bool:
    """Return whether this visitor may use the page without signing in first.

    Raises:
        Http404: the page is switched off.
    """
    try:
        return may_visit(user)
    except NotFound as switched_off:
        raise Http404 from switched_off


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
    request: HttpRequest, user: Any, guest: str, limit_s: int
) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return why a session would be refused now, which the browser cannot read from a refused handshake, and the
    ICE servers of a visitor who may talk."""
    if reasons := await readiness():
        return [_shown(reason, user) for reason in reasons], []
    try:
        caller = await page_caller(user, guest)
        servers = ice.ice_servers(caller.label, limit_s)
        await seats().check(caller, address_of_request(request))
    except Throttled as full:
        # Room for one more conversation comes by itself; a guest's hour does not pass while they wait in line.
        code = "at_capacity" if full.code == CONCURRENCY else "guest_limit"
        return [{"code": code, "message": full.message}], servers
    except AccessDenied as denied:
        return [{"code": "not_allowed", "message": denied.message}], []
    return [], servers


def _digest(relays: list[Relay]) -> str:
    """Changes when a relay comes, goes or is started again: what a page remembers of those before counts no more."""
    return salted_hmac("voiceapp.pages.relays", repr(sorted(map(repr, relays)))).hexdigest()[:16] if relays else ""


def _tries(is_multilingual: bool) -> list[str]:
    """What visitors may say first, in a language that the assistant understands."""
    with override(get_language() if is_multilingual else settings.LANGUAGE_CODE):
        return [_("What can you do?"), _("Tell me a joke."), _("Set a timer for one minute.")]


@require_safe
async def voice_sample(request: HttpRequest, name: str) -> HttpResponse:
    """A sentence in one of the page's voices, for those who may talk here."""
    if not _is_open_to(await request.auser()):
        return _signed_out()
    try:
        sample = await voice_samples().get(name)
    except VoiceError as error:
        refusal = error_response_of(error)
        return JsonResponse({"code": refusal.code, "message": refusal.message}, status=refusal.status)
    response = HttpResponse(sample, content_type=MEDIA_TYPE)
    patch_cache_control(response, private=True, max_age=SAMPLE_KEPT_S)
    return response


def _signed_out() -> JsonResponse:
    return JsonResponse({"code": "signed_out", "message": SignInRequired().message}, status=401)


@require_safe
@never_cache
async def config(request: HttpRequest) -> HttpResponse:
    """Return what the page may choose from, and whether a conversation can start now.

    Asked before every conversation: it also leaves the cookie by which the socket knows a guest again.
    401 when the visitor has to sign in first.
    """
    user = await request.auser()
    if not _is_open_to(user):
        return _signed_out()
    is_signed_in = bool(user.is_authenticated)
    guest = guest_of(request.COOKIES) or new_guest()
    limit_s = settings.SESSION_LIFETIME_S if is_signed_in else settings.GUEST_SESSION_S
    reasons, ice_servers = await _prospects(request, user, guest, limit_s)
    relays = await open_relays()
    named = request.GET.get("agent", "")[:100]
    agent = await visited_agent(user, named)
    cards = page_cards(named)
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
        }
    )
    if not is_signed_in:
        remember_guest(response, guest)
    return response
