"""The page that a person sees when another page failed."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.csrf import requires_csrf_token

from voiceapp.http.error_responses import error_response_of


@requires_csrf_token
def failed(request: HttpRequest) -> HttpResponse:
    """The page in place of one that failed: 503 where the database is away, else 500. It needs no row itself."""
    error = sys.exc_info()[1]
    refusal = error_response_of(error) if isinstance(error, Exception) else None
    if refusal is None or refusal.status != 503:
        return HttpResponse(render_to_string("500.html"), status=500)
    return HttpResponse(render_to_string("503.html"), status=503, headers=dict(refusal.headers))
