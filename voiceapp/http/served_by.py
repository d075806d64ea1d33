"""The model that did the work of a request: a caller reads it in a header, also when another model stood in."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Served-By"


def noting(request: HttpRequest) -> Callable[[str], None]:
    """Takes the note of who serves a request, before its response has begun."""

    def note(served_by: str) -> None:
        request.served_by = served_by

    return note


def tell(request: HttpRequest, response: HttpResponseBase) -> None:
    """Put the note into the response, where there is one."""
    if request.served_by:
        response.headers[HEADER] = request.served_by
