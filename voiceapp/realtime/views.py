"""The page's own way to WebRTC: known by its cookie, and therefore guarded like the page's socket, and by CSRF."""

from __future__ import annotations

import json
import logging
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from voiceapp.accounts.auth import Caller, caller_from_user, guest_caller
from voiceapp.accounts.guests import guest_of
from voiceapp.envelope import request_id_of
from voiceapp.errors import AccessDenied, NotFound, VoiceError
from voiceapp.failures import refusal_body, refusal_of, refusal_of_status
from voiceapp.realtime.calls import require_offer, take_call
from voiceapp.realtime.transports.websocket import require_own_origin

logger = logging.getLogger(__name__)


class _Csrf(CsrfViewMiddleware):
    """Django's check, with its reason instead of its HTML page."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return HttpResponse(reason, status=403)


def _guarded(request: HttpRequest) -> HttpResponse:
    """A view that is not exempt: for the check to be made against."""
    return HttpResponse()


_csrf = _Csrf(_guarded)


@csrf_exempt  # checked here, to be refused in JSON
@never_cache
async def page_offer(request: HttpRequest) -> HttpResponse:
    """`POST /voice/webrtc?model=&time_zone=`: offer in, answer out; refusals are JSON."""
    request_id = request_id_of(request)
    if request.method != "POST":
        refusal = refusal_of_status(405, headers={"Allow": "POST"})
    else:
        try:
            caller = await _caller(request)
            return await take_call(
                request,
                caller,
                time_zone=request.GET.get("time_zone", ""),
                session_key=request.session.session_key or "",
            )
        except VoiceError as error:
            refusal = refusal_of(error)
            logger.info("an offer of the page was refused: %s (%s)", refusal.message, request_id)
    return HttpResponse(
        json.dumps(refusal_body(request.path_info, refusal, request_id)),
        status=refusal.status,
        content_type="application/json",
        headers={**refusal.headers, "X-Request-ID": request_id},
    )


async def _caller(request: HttpRequest) -> Caller:
    if settings.PUBLIC_PAGE == "off":
        raise NotFound("The page is switched off.")
    require_own_origin(request.scope)
    require_offer(request)  # the check below looks for its token in forms, and reads anything that says it is one
    _csrf.process_request(request)
    if (refused := _csrf.process_view(request, _guarded, (), {})) is not None:
        raise AccessDenied(f"Load the page again: {refused.content.decode()}")
    user = await request.auser()
    if user.is_authenticated:
        return await caller_from_user(user)
    guest = guest_of(request.COOKIES)
    if settings.PUBLIC_PAGE != "guest" or not guest:
        raise AccessDenied("Sign in to talk.")
    return await guest_caller(guest)
