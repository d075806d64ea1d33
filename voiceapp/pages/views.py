"""The voice page, on its own and within other sites, the connection check, privacy, and samples of voices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.http import urlencode
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from voiceapp.accounts.guests import site_token
from voiceapp.accounts.models import GuestSite
from voiceapp.accounts.page import SITE_PARAMETER, site_caller
from voiceapp.agents.answering import Answering
from voiceapp.errors import VoiceError
from voiceapp.http.error_responses import error_response_of
from voiceapp.pages.config import is_open_to, signed_out
from voiceapp.pages.languages import page_words
from voiceapp.pages.page_models import has_small_model, is_multilingual, visited_agent
from voiceapp.pages.privacy import facts
from voiceapp.pages.voice_samples import MEDIA_TYPE, voice_samples
from voiceapp.relays import open_relays

SAMPLE_KEPT_S = 3600
"""Seconds for which a browser plays a sample again without asking."""
STATIC_DIR = settings.BASE_DIR / "static"
MODULES = sorted(
    path.relative_to(STATIC_DIR).as_posix()
    for path in Path(STATIC_DIR, "voice").rglob("*.js")
    if not path.name.endswith((".worklet.js", "theme.js")) and path.parent.name not in ("vendor", "check")
)
"""The page's modules, so that the browser fetches them all at once instead of import by import. What is vendored is
fetched when it is needed."""


@require_safe
@never_cache
async def voice(request: HttpRequest) -> HttpResponseBase:
    return await _page(request, "")


@require_safe
@never_cache
async def agent(request: HttpRequest, name: str) -> HttpResponseBase:
    """The voice page of one agent, or with `?version=draft` of its draft."""
    version = request.GET.get("version", "")[:20]
    return await _page(request, f"{name}@{version}" if version else name)


async def _page(request: HttpRequest, named: str) -> HttpResponseBase:
    user = await request.auser()
    if not is_open_to(user):
        return redirect_to_login(request.get_full_path())
    found = {"is_signed_in": user.is_authenticated, "is_staff": user.is_staff}
    found["has_password"] = user.is_authenticated and user.has_usable_password()
    return await _shown(request, await visited_agent(user, named), named, found)


@require_safe
@never_cache
async def embed(request: HttpRequest) -> HttpResponseBase:
    """`/embed?site=&agent=`: the page within pages of another site that an operator has allowed, and of no other."""
    if settings.PUBLIC_PAGE == "off":
        raise Http404
    sites = GuestSite.objects.filter(account__is_active=True)
    site = await sites.filter(origin=request.GET.get("site", "")[:100].replace("\0", "")).afirst()
    if site is None:
        return render(request, "voice/site_refused.html", status=403)
    named = request.GET.get("agent", "")[:100]
    agent = await visited_agent(AnonymousUser(), named)
    response = await _shown(request, agent, named, {"site": site}, **{SITE_PARAMETER: site_token(site.pk)})
    response._csp_replace = {"frame-ancestors": [site.origin]}
    response.xframe_options_exempt = True
    return response


@require_safe
def embed_script(request: HttpRequest) -> HttpResponse:
    """`/embed.js`: the talk button for other sites, wherever this release keeps it."""
    return redirect(static("embed/embed.js"))


@require_safe
@never_cache
async def check(request: HttpRequest) -> HttpResponseBase:
    """`/check?agent=`: what a conversation needs, tried one by one, for those who may talk here."""
    user = await request.auser()
    if not is_open_to(user):
        return redirect_to_login(request.get_full_path())
    named = request.GET.get("agent", "")[:100]
    await visited_agent(user, named)
    context = {"config_url": _address("voice-config", agent=named), "words": page_words(get_language())}
    return await _talking(render(request, "voice/check.html", context))


async def _shown(
    request: HttpRequest, agent: Answering, named: str, found: dict[str, Any], **query: str
) -> HttpResponse:
    """The page of an agent; `query` goes along when it asks for its configuration."""
    context = {
        **found,
        "agent": agent,
        "config_url": _address("voice-config", agent=named, **query),
        "check_url": _address("check", agent=named) if not query or settings.PUBLIC_PAGE == "guest" else "",
        "modules": MODULES,
        "privacy": facts(agent),
        "has_small_model": has_small_model(agent),
        "words": page_words(get_language()),
        "tries": _tries(is_multilingual(agent)),
        "is_multilingual": is_multilingual(agent),
    }
    return await _talking(render(request, "voice/voice.html", context))


async def _talking(response: HttpResponse) -> HttpResponse:
    """A page that asks for the microphone and connects to relays."""
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


def _address(view: str, **query: str) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{reverse(view)}?{urlencode(given)}" if given else str(reverse(view))


def _tries(is_multilingual: bool) -> list[str]:
    """Suggestions of what visitors may say first, in a language that the assistant understands."""
    with override(get_language() if is_multilingual else settings.LANGUAGE_CODE):
        return [_("What can you do?"), _("Tell me a joke."), _("Set a timer for one minute.")]


@require_safe
async def voice_sample(request: HttpRequest, name: str) -> HttpResponse:
    """A sentence in one of the page's voices, for those who may talk here."""
    try:
        if SITE_PARAMETER in request.GET:
            await site_caller(request.GET[SITE_PARAMETER])
        elif not is_open_to(await request.auser()):
            return signed_out()
        sample = await voice_samples().get(name)
    except VoiceError as error:
        refusal = error_response_of(error)
        return JsonResponse({"code": refusal.code, "message": refusal.message}, status=refusal.status)
    response = HttpResponse(sample, content_type=MEDIA_TYPE)
    patch_cache_control(response, private=True, max_age=SAMPLE_KEPT_S)
    return response
