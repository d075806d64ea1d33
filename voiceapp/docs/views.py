"""The pages for developers and operators: the reference of the HTTP operations, the manual, and search over both."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from pydantic import TypeAdapter, ValidationError

from voiceapp.api import ORIGIN, openapi_document, origin_of
from voiceapp.http.openapi import FAILURES
from voiceapp.http.operation_errors import ANYWHERE

from . import codes, manual
from .asyncapi import asyncapi
from .events import event_pages
from .examples import LANGUAGES, ExampleCall
from .index import entries
from .reference import Page, pages
from .search import MAX_QUERY_CHARS, SearchEntry, search
from .writing import to_inline_html


@require_safe
async def reference(request: HttpRequest) -> HttpResponse:
    """`/docs`: how to call, and what there is."""
    return await _page(request, "docs/reference.html", {})


@require_safe
async def family(request: HttpRequest, slug: str) -> HttpResponse:
    """`/docs/reference/<slug>`: the operations of one family."""
    page = next((page for page in await asyncio.to_thread(_pages) if page.family.slug == slug), None)
    if page is None:
        raise Http404
    read = [found for found in map(manual.page, page.family.manual) if found is not None]
    return await _page(request, "docs/family.html", {"page": page, "manual_pages": read})


PLAYGROUND = {
    "Chat": "/compatible-mode/v1/chat/completions",
    "Embedding": "/compatible-mode/v1/embeddings",
    "Reranking": "/compatible-mode/v1/rerank",
    "Transcription": "/compatible-mode/v1/audio/transcriptions",
    "Speech": "/compatible-mode/v1/audio/speech",
    "A task": "/api/v1/services/audio/tts/synthesis",
}
"""One operation of each kind, by its path."""


@require_safe
async def playground(request: HttpRequest) -> HttpResponse:
    """`/docs/playground`: a call of each kind, to be changed and sent."""
    found = {each.path: each for page in await asyncio.to_thread(_pages) for each in page.operations}
    calls = [(title, found[path]) for title, path in PLAYGROUND.items()]
    return await _page(request, "docs/playground.html", {"place": "playground", "calls": calls})


MAX_TRIED_BYTES = 100_000
TRIED = TypeAdapter(ExampleCall)


@csrf_exempt  # it reads nothing but the request, and keeps nothing
@require_POST
async def programs(request: HttpRequest) -> HttpResponse:
    """`/docs/programs`: a request that was tried, as a program in each language. The key is not part of it."""
    if len(request.body) > MAX_TRIED_BYTES:
        return JsonResponse({"message": "This request is too long for a program."}, status=413)
    try:
        call = TRIED.validate_json(request.body)
    except ValidationError:
        return JsonResponse({"message": "This is not a request."}, status=400)
    if call.is_form and not isinstance(call.body, dict):
        return JsonResponse({"message": "The body of a form is an object."}, status=400)
    return JsonResponse({language: written(call) for language, written in LANGUAGES.items()})


@require_safe
async def errors(request: HttpRequest) -> HttpResponse:
    """`/docs/reference/errors`: what codes mean, and what to do."""
    told = {"refusals": codes.REFUSALS, "events": codes.EVENT_CODES, "closes": codes.CLOSE_CODES}
    failures = {status: to_inline_html(meaning) for status, meaning in FAILURES.items()}
    about = {"failures": failures, "is_errors": True, "anywhere": ANYWHERE}
    return await _page(request, "docs/errors.html", about | told)


@require_safe
async def events(request: HttpRequest, dialect: str) -> HttpResponse:
    """`/docs/reference/events` and `/docs/reference/events-<dialect>`: every realtime event of a dialect."""
    page = (await asyncio.to_thread(event_pages)).get(dialect)
    if page is None:
        raise Http404
    return await _page(request, "docs/events.html", {"events": page})


@require_safe
async def asyncapi_document(request: HttpRequest) -> HttpResponse:
    """`/asyncapi.json`."""
    document = await asyncio.to_thread(asyncapi, origin_of(request).decode())
    return JsonResponse(document, json_dumps_params={"ensure_ascii": False}, headers={"Cache-Control": "max-age=300"})


@require_safe
async def llms(request: HttpRequest) -> HttpResponse:
    """`/llms.txt`: what there is to read, for language models (llmstxt.org)."""
    context = {
        "origin": origin_of(request).decode(),
        "shelves": manual.shelves(),
        "families": await asyncio.to_thread(_pages),
        "dialects": event_pages().values(),
    }
    return render(request, "docs/llms.txt", context, content_type="text/markdown; charset=utf-8")


@require_safe
async def find(request: HttpRequest) -> HttpResponse:
    """`/docs/search?q=…`."""
    query = request.GET.get("q", "").strip()[:MAX_QUERY_CHARS]
    results = search(await asyncio.to_thread(_entries), query)
    return await _page(request, "docs/search.html", {"place": "search", "query": query, "results": results})


@require_safe
async def contents(request: HttpRequest) -> HttpResponse:
    """`/docs/manual`: what there is to read."""
    return render(request, "docs/contents.html", {"place": "manual", "shelves": manual.shelves()})


@require_safe
async def manual_page(request: HttpRequest, slug: str, *, as_text: bool = False) -> HttpResponse:
    """`/docs/manual/<slug>`, and as Markdown `/docs/manual/<slug>.md`."""
    found = manual.pages()
    page = manual.page(re.sub(r"^\d+-", "", slug))
    if page is None:
        raise Http404
    if as_text:
        return HttpResponse(page.text, content_type="text/markdown; charset=utf-8")
    place = found.index(page)
    context = {
        "place": "manual",
        "page": page,
        "shelves": manual.shelves(),
        "before": found[place - 1] if place else None,
        "after": found[place + 1] if place + 1 < len(found) else None,
    }
    return render(request, "docs/manual.html", context)


async def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    usual = {
        "place": "reference",
        "origin": ORIGIN,
        "families": await asyncio.to_thread(_pages),
        "dialects": (await asyncio.to_thread(event_pages)).values(),
    }
    response = render(request, template, usual | context)
    response.content = response.content.replace(ORIGIN.encode(), origin_of(request))
    return response


@cache
def _pages() -> list[Page]:
    """Return the reference for every origin: strangers may ask under any port, and it takes a tenth of a second."""
    return pages(openapi_document(), ORIGIN)


@cache
def _entries() -> list[SearchEntry]:
    return entries(_pages())
