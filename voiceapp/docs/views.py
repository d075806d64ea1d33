"""The pages for developers and operators: the reference of the HTTP operations, the manual, and search over both."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from voiceapp.api import openapi_document
from voiceapp.http.openapi import FAILURES

from . import codes, manual
from .index import entries
from .reference import Page, pages
from .search import MAX_QUERY_CHARS, SearchEntry, search
from .writing import to_inline_html


@require_safe
async def reference(request: HttpRequest) -> HttpResponse:
    """`/docs`: how to call, and what there is."""
    return render(request, "docs/reference.html", _context(request))


@require_safe
async def family(request: HttpRequest, slug: str) -> HttpResponse:
    """`/docs/reference/<slug>`: the operations of one family."""
    context = _context(request)
    page = next((page for page in context["families"] if page.family.slug == slug), None)
    if page is None:
        raise Http404
    read = [found for found in map(manual.page, page.family.manual) if found is not None]
    return render(request, "docs/family.html", context | {"page": page, "manual_pages": read})


@require_safe
async def errors(request: HttpRequest) -> HttpResponse:
    """`/docs/reference/errors`: what codes mean, and what to do."""
    told = {"refusals": codes.REFUSALS, "events": codes.EVENT_CODES, "closes": codes.CLOSE_CODES}
    failures = {status: to_inline_html(meaning) for status, meaning in FAILURES.items()}
    return render(request, "docs/errors.html", _context(request) | {"failures": failures, "is_errors": True} | told)


@require_safe
async def find(request: HttpRequest) -> HttpResponse:
    """`/docs/search?q=…`."""
    query = request.GET.get("q", "").strip()[:MAX_QUERY_CHARS]
    context = _context(request) | {"place": "search", "query": query, "results": search(_entries(), query)}
    return render(request, "docs/search.html", context)


@require_safe
async def contents(request: HttpRequest) -> HttpResponse:
    """`/docs/manual`: what there is to read."""
    return render(request, "docs/contents.html", {"place": "manual", "pages": manual.pages()})


@require_safe
async def manual_page(request: HttpRequest, slug: str) -> HttpResponse:
    """`/docs/manual/<slug>`."""
    found = manual.pages()
    page = manual.page(slug)
    if page is None:
        raise Http404
    place = found.index(page)
    context = {
        "place": "manual",
        "page": page,
        "pages": found,
        "before": found[place - 1] if place else None,
        "after": found[place + 1] if place + 1 < len(found) else None,
    }
    return render(request, "docs/manual.html", context)


def _context(request: HttpRequest) -> dict[str, Any]:
    origin = request.build_absolute_uri("/").rstrip("/")
    return {"place": "reference", "origin": origin, "families": _pages(origin)}


@lru_cache(maxsize=8)
def _pages(origin: str) -> list[Page]:
    return pages(openapi_document(), origin)


@lru_cache(maxsize=1)
def _entries() -> list[SearchEntry]:
    """The same for every host: search shows no examples."""
    return entries(pages(openapi_document(), ""))
