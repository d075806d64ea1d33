"""Everything under the API roots is answered in one shape, by name, without a redirect and without HTML.

Requests to the API carry a key and no cookie: this middleware stands first and takes them past sessions, CSRF, login
and messages straight to their operation. What an operation raises is translated here, once. Any other request passes on
untouched.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import resolve

from voiceapp import formats
from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.failures import MediaTypeRefused, Refusal, refusal_body, refusal_of, refusal_of_status

logger = logging.getLogger(__name__)

API_ROOTS = ("/api/", "/compatible-api/", "/compatible-mode/", "/openapi.json")
"""Where programs call; any version of it, so that a wrong one is refused in JSON as well."""

KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


class EnvelopeMiddleware:
    """The way of an API request; the first middleware in the list."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self._get_response = get_response
        self._security = SecurityMiddleware(get_response)
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API_ROOTS):
            return await self._get_response(request)
        request.request_id = request_id_of(request)
        try:
            response = await serve(request)
        except Exception as error:
            response = await translate(request, error)
        if response.status_code >= 400:
            response = enveloped(request, response)
        response.headers["X-Request-ID"] = request.request_id
        response.headers.setdefault("Cache-Control", "no-store")
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        secured: HttpResponseBase = self._security.process_response(request, response)
        return secured


async def serve(request: HttpRequest) -> HttpResponseBase:
    """Call the operation at this address.

    Raises:
        Exception: whatever stands in the way, or the operation raises.
    """
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise AccessDenied("Call this address by https: over http, others can read the key.")
    if "%00" in request.META.get("QUERY_STRING", "") or "\x00" in request.path_info:
        raise InvalidParameter("The address holds a NUL character.")
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() not in ("", "identity"):
        raise MediaTypeRefused("Send the body as it is, without Content-Encoding.")
    if request.path_info.endswith("/"):
        # Clients add the slash or leave it out as they like, and few follow a redirect with their body.
        request.path_info = request.path_info.rstrip("/")
        request.path = request.path.rstrip("/")
    match = resolve(request.path_info)
    request.resolver_match = match
    view = match.func if iscoroutinefunction(match.func) else sync_to_async(match.func)
    response: HttpResponseBase = await view(request, *match.args, **match.kwargs)
    return response


async def translate(request: HttpRequest, error: Exception) -> HttpResponse:
    """The answer for what was raised; what nobody expected is logged whole."""
    refusal = refusal_of(error)
    if refusal.is_fault:
        logger.error("%s %s failed (%s)", request.method, request.path, request.request_id, exc_info=error)
        await got_request_exception.asend(sender=EnvelopeMiddleware, request=request)
    elif refusal.status >= 500:
        logger.warning("%s: %s (%s)", refusal.code, error, request.request_id)
    return answer(request, refusal)


def enveloped(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The response itself if it already speaks the family's shape; else one that does, with the same status."""
    if _is_enveloped(response):
        return response
    response.close()
    kept = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    return answer(request, refusal_of_status(response.status_code, headers=kept))


def answer(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """A refusal on its way out."""
    body = refusal_body(request.path_info, refusal, request.request_id)
    return HttpResponse(
        json.dumps(body), status=refusal.status, content_type="application/json", headers=dict(refusal.headers)
    )


def request_id_of(request: HttpRequest) -> str:
    """The id that the server gave this request and logs it by; a fresh one where no server of ours stands before."""
    state = getattr(request, "scope", {}).get("state") or {}
    return str(state.get("request_id") or formats.request_id())


def _is_enveloped(response: HttpResponseBase) -> bool:
    if response.streaming or not response.headers.get("Content-Type", "").startswith("application/json"):
        return False
    try:
        body = json.loads(response.content)
    except ValueError:
        return False
    return isinstance(body, dict) and ("error" in body or body.keys() >= {"code", "message"}) and "request_id" in body
