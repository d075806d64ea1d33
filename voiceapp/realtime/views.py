"""The page's own ways to WebRTC and AOQ: known by its cookie, they are guarded like the page's socket, and by CSRF.

A report of a session is guarded like the page's socket and by its address, which cannot be guessed: a page that is
being left has no time to ask for a token.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from pydantic import ValidationError

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.guests import guest_of
from voiceapp.accounts.page import SITE_PARAMETER, page_caller, require_own_page, site_caller
from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.http.error_responses import (
    ErrorResponse,
    MediaTypeRefused,
    error_json,
    error_response_of,
    error_response_of_status,
)
from voiceapp.http.refusals import request_id_of
from voiceapp.realtime.aoq.allocation import allocate
from voiceapp.realtime.doors import PAGE_GRANT, PAGE_OFFER, Door
from voiceapp.realtime.forwarding import Report, take_report
from voiceapp.realtime.webrtc.exchange import exchange, require_offer

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
    return await _answered(request, partial(_begin, exchange, PAGE_OFFER, require_offer))


@csrf_exempt  # checked here, to be refused in JSON
@never_cache
async def page_grant(request: HttpRequest) -> HttpResponse:
    """`POST /voice/aoq?model=&time_zone=`: a grant for one connection to a relay; refusals are JSON."""
    return await _answered(request, partial(_begin, allocate, PAGE_GRANT, _require_no_form))


@csrf_exempt  # its address is the token
@never_cache
async def page_report(request: HttpRequest, name: str) -> HttpResponse:
    """`POST /voice/sessions/{name}`: what the page sees of a session that another service holds."""
    return await _answered(request, partial(_report, name))


@csrf_exempt  # nothing is done
async def socket_address(request: HttpRequest) -> HttpResponse:
    """`/api-ws/v1/realtime`, `/api-ws/v1/inference`, asked without a WebSocket: 426 in JSON."""
    message = "This is the address of a WebSocket. Connect to it by wss: or ws: with a WebSocket client."
    return _refusal(request, error_response_of_status(426, message, headers={"Upgrade": "websocket"}))


async def _answered(request: HttpRequest, answer: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> HttpResponse:
    if request.method != "POST":
        return _refusal(request, error_response_of_status(405, headers={"Allow": "POST"}))
    try:
        return await answer(request)
    except Exception as error:
        refusal = error_response_of(error)
        level = logging.ERROR if refusal.is_fault else logging.INFO
        cause = error if refusal.is_fault else None
        logger.log(
            level,
            "%s: refused: %s (%s)",
            request.path_info,
            refusal.message,
            request_id_of(request.scope),
            exc_info=cause,
        )
        return _refusal(request, refusal)


async def _begin(
    answer: Callable[..., Awaitable[HttpResponse]],
    door: Door,
    require_body: Callable[[HttpRequest], None],
    request: HttpRequest,
) -> HttpResponse:
    require_own_page(request.scope)
    require_body(request)  # the check below looks for its token in forms, and reads anything that says it is one
    if SITE_PARAMETER not in request.GET:  # known by a cookie, which any site can have a browser send
        _csrf.process_request(request)
        if (refused := _csrf.process_view(request, _guarded, (), {})) is not None:
            raise AccessDenied(f"Load the page again: {refused.content.decode()}")
    answered = await answer(request, await _caller(request), door, session_key=request.session.session_key or "")
    if SITE_PARAMETER in request.GET and "X-Session-Report" in answered:
        answered["X-Session-Report"] += "?" + urlencode({SITE_PARAMETER: request.GET[SITE_PARAMETER]})
    return answered


async def _report(name: str, request: HttpRequest) -> HttpResponse:
    require_own_page(request.scope)
    caller = await _caller(request)
    try:
        report = Report.model_validate_json(request.body)
    except ValidationError:
        raise InvalidParameter('A report is JSON such as {"state": "connected"} or {"state": "ended"}.') from None
    await take_report(caller, name, report)
    return HttpResponse(status=204)


def _require_no_form(request: HttpRequest) -> None:
    """Check the media type of a body without which a grant is issued as well.

    Raises:
        MediaTypeRefused: if the body is neither JSON nor absent.
    """
    if request.content_type not in ("", "application/json"):
        raise MediaTypeRefused("Send JSON, or no body.")


def _refusal(request: HttpRequest, refusal: ErrorResponse) -> HttpResponse:
    request_id = request_id_of(request.scope)
    return HttpResponse(
        error_json(request.path_info, refusal, request_id),
        status=refusal.status,
        content_type="application/json",
        headers={**refusal.headers, "X-Request-ID": request_id},
    )


async def _caller(request: HttpRequest) -> Caller:
    if SITE_PARAMETER in request.GET:
        return await site_caller(request.GET[SITE_PARAMETER])
    return await page_caller(await request.auser(), guest_of(request.COOKIES))
