"""The pages for developers and operators: the reference of the HTTP operations, and the manual."""

from __future__ import annotations

from functools import lru_cache

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from voiceapp.api import openapi_document
from voiceapp.http.openapi import FAILURES

from . import manual
from .reference import Group, groups
from .writing import to_inline_html


@require_safe
async def reference(request: HttpRequest) -> HttpResponse:
    """`/docs`."""
    origin = request.build_absolute_uri("/").rstrip("/")
    failures = {status: to_inline_html(meaning) for status, meaning in FAILURES.items()}
    context = {"place": "reference", "groups": _groups(origin), "origin": origin, "failures": failures}
    return render(request, "docs/reference.html", context)


@require_safe
async def contents(request: HttpRequest) -> HttpResponse:
    """`/docs/manual`: what there is to read."""
    return render(request, "docs/contents.html", {"place": "manual", "pages": manual.pages()})


@require_safe
async def manual_page(request: HttpRequest, slug: str) -> HttpResponse:
    """`/docs/manual/<slug>`."""
    pages = manual.pages()
    page = manual.page(slug)
    if page is None:
        raise Http404
    place = pages.index(page)
    context = {
        "place": "manual",
        "page": page,
        "pages": pages,
        "before": pages[place - 1] if place else None,
        "after": pages[place + 1] if place + 1 < len(pages) else None,
    }
    return render(request, "docs/manual.html", context)


@lru_cache(maxsize=8)
def _groups(origin: str) -> list[Group]:
    return groups(openapi_document(), origin)
