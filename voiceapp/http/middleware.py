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
from django.core.exceptions import BadRequest
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import resolve

from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.formats import one_line
from voiceapp.http.error_responses import (
    ErrorResponse,
    MediaTypeRefused,
    error_json,
    error_response_of,
    error_response_of_status,
)
from voiceapp.http.refusals import request_id_of
from voiceapp.http.roots import API_ROOTS, canonical
from voiceapp.http.served_by import tell as tell_who_served

__all__ = ["API_ROOTS", "EnvelopeMiddleware"]

logger = logging.getLogger(__name__)


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
        request.path_info = canonical(request.path_info)
        if not request.path_info.startswith(API_ROOTS):
            if request.content_type_fault:
                raise BadRequest(request.content_type_fault)
            return await self._get_response(request)
        request.request_id = request_id_of(getattr(request, "scope", {}))
        request.served_by = ""
        try:
            response = await serve(request)
        except Exception as error:
            response = await translate(request, error)
        if response.status_code >= 400:
            response = enveloped(request, response)
        else:
            tell_who_served(request, response)
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
    if request.content_type_fault:
        raise InvalidParameter(request.content_type_fault)
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
    refusal = error_response_of(error)
    if refusal.is_fault:
        address = one_line(f"{request.method} {request.path}")
        logger.error("%s failed (%s)", address, request.request_id, exc_info=error)
        await got_request_exception.asend(sender=EnvelopeMiddleware, request=request)
    elif refusal.status >= 500:
        logger.warning("%s: %s (%s)", refusal.code, one_line(error), request.request_id)
    return http_response(request, refusal)


def enveloped(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The response itself if it already speaks the family's shape; else one that does, with the same status."""
    if _is_enveloped(response):
        return response
    response.close()
    kept = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    return http_response(request, error_response_of_status(response.status_code, headers=kept))


def http_response(request: HttpRequest, refusal: ErrorResponse) -> HttpResponse:
    body = error_json(request.path_info, refusal, request.request_id)
    return HttpResponse(body, status=refusal.status, content_type="application/json", headers=dict(refusal.headers))


def _is_enveloped(response: HttpResponseBase) -> bool:
    if response.streaming or not response.headers.get("Content-Type", "").startswith("application/json"):
        return False
    try:
        body = json.loads(response.content)
    except ValueError:
        return False
    return isinstance(body, dict) and ("error" in body or body.keys() >= {"code", "message"}) and "request_id" in body
