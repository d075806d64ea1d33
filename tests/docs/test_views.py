"""The documentation's pages."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx
import pytest
from django.core.asgi import get_asgi_application
from django.test import AsyncClient

from voiceapp.api import ORIGIN, _openapi_json, openapi_document
from voiceapp.docs.families import FAMILIES
from voiceapp.docs.manual import pages
from voiceapp.docs.views import _pages

FAMILY_PAGES = [f"/docs/reference/{family.slug}" for family in FAMILIES]
PAGES = [
    *(
        "/docs",
        "/docs/playground",
        "/docs/reference/errors",
        "/docs/reference/events",
        *(f"/docs/reference/events-{dialect}" for dialect in ("openai", "beta", "run-task")),
        *FAMILY_PAGES,
        "/docs/search",
        "/docs/search?q=task",
        "/docs/search?q=zzzz",
    ),
    *("/docs/manual", *(f"/docs/manual/{page.slug}" for page in pages())),
]
SCRIPT = '<script type="module" src="/static/docs/docs.js"></script>'
TRY = '<script type="module" src="/static/docs/try.js"></script>'
THEME = '<script src="/static/voice/theme.js"></script>'


@pytest.fixture
def client() -> AsyncClient:
    return AsyncClient()


async def test_the_reference_tells_of_every_operation_once(client: AsyncClient) -> None:
    pages = [(await client.get(address)).content.decode() for address in FAMILY_PAGES]
    shown = [html.unescape(re.sub(r"<span class=.*?>|</span>", "", page)) for page in pages]
    titles: list[str] = []
    for text in shown:
        headings = re.findall(r'<h2 id="(\w+)"><a class="place" href="#\1">([^<]+)', text)
        assert len({heading for _, heading in headings}) == len(headings)
        titles += [place for place, _ in headings]
    everywhere = "".join(shown)
    for path, operations in openapi_document()["paths"].items():
        assert f"<code>{path}</code>" in everywhere
        if not path.startswith("/api/v1/agentsvc/"):
            assert f""" "http://testserver{path.partition("{")[0]}""" in everywhere
            for operation in operations.values():
                assert titles.count(operation["operationId"]) == 1
    assert not any(title.startswith("agentsvc_") for title in titles)


async def test_every_family_has_a_page_that_its_contents_name(client: AsyncClient) -> None:
    for family in FAMILIES:
        text = (await client.get(f"/docs/reference/{family.slug}")).content.decode()
        assert f'<a href="/docs/reference/{family.slug}" aria-current="page">{family.title}</a>' in text
        assert f"<h1>{family.title}</h1>" in text


@pytest.fixture(scope="module")
def linked() -> dict[str, set[str]]:
    """Ids on the pages that links have led to, by address: nearly every page is linked from nearly every page."""
    return {}


@pytest.mark.parametrize("address", PAGES)
async def test_every_page_works_without_scripts_and_its_links_lead_somewhere(
    client: AsyncClient, linked: dict[str, set[str]], address: str
) -> None:
    answer = await client.get(address)
    assert answer.status_code == 200
    assert "unsafe" not in answer["Content-Security-Policy"]
    text = answer.content.decode()
    assert (text.count(SCRIPT), text.count(THEME)) == (1, 1)
    assert text.count(TRY) == (address in [*FAMILY_PAGES, "/docs/playground"])
    without = text.replace(SCRIPT, "").replace(THEME, "").replace(TRY, "")
    shown = re.sub(r"<code.*?</code>|https?://testserver", "", without, flags=re.DOTALL)
    for forbidden in ("<script", "<style", " style=", " onclick=", "http://", "https://"):
        assert forbidden not in shown
    places = set(re.findall(r'id="([^"]+)"', text))
    assert len(places) == len(re.findall(r'id="([^"]+)"', text))
    for target in set(re.findall(r'<a [^>]*href="([^"]+)"', text)):
        if target.startswith("#"):
            assert target[1:] in places
        elif target != "/":
            page, _, place = html.unescape(target).partition("#")
            if page not in linked:
                found = await client.get(page)
                assert found.status_code == 200
                linked[page] = set(re.findall(r'id="([^"]+)"', found.content.decode()))
            assert not place or place in linked[page]


async def test_the_manual_is_read_from_page_to_page(client: AsyncClient) -> None:
    first, second, *_ = pages()
    text = (await client.get(f"/docs/manual/{first.slug}")).content.decode()
    assert f'rel="next" href="/docs/manual/{second.slug}"' in text
    assert 'rel="prev"' not in text
    text = (await client.get(f"/docs/manual/{second.slug}")).content.decode()
    assert f'rel="prev" href="/docs/manual/{first.slug}"' in text
    assert f'<a href="/docs/manual/{second.slug}" aria-current="page">' in text
    for title in ("Talking", "Connecting programs", "Operating"):
        assert f'<p class="side-title">{title}</p>' in text


@pytest.mark.parametrize(
    "address",
    [
        "/docs/manual/nothing",
        "/docs/manual/..",
        "/docs/nothing",
        "/docs/reference/nothing",
        "/docs/reference/events-no",
    ],
)
async def test_it_has_no_other_pages(client: AsyncClient, address: str) -> None:
    assert (await client.get(address)).status_code == 404


async def found(client: AsyncClient, query: str) -> list[str]:
    """The addresses that search answers with."""
    text = (await client.get("/docs/search", {"q": query})).content.decode()
    return re.findall(r'<li><a href="(/docs/[^"]+)">', text.partition('class="results"')[2])


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("cancel a task", "/docs/reference/tasks#tasks_cancel_task"),
        ("/v1/responses", "/docs/reference/chat#compatible_responses_create_response"),
        ("/api/v1/agentsvc/webhook_endpoints", "/docs/reference/webhooks#agentstudio_create_endpoint"),
        ("max_output_tokens", "/docs/reference/chat#compatible_responses_create_response"),
        ("4402", "/docs/reference/errors#close-codes"),
        ("insufficient_quota", "/docs/reference/errors#refusals"),
        ("push to talk", "/docs/manual/push-to-talk-and-mute"),
    ],
)
async def test_search_finds_operations_fields_codes_and_the_manual(client: AsyncClient, query: str, place: str) -> None:
    assert place in (await found(client, query))[:5]


async def test_search_marks_what_it_found_and_nothing_else(client: AsyncClient) -> None:
    text = (await client.get("/docs/search", {"q": "Cancel <b>"})).content.decode()
    assert "<b>" not in text
    assert 'value="Cancel &lt;b&gt;"' in text
    text = (await client.get("/docs/search", {"q": "cancel task"})).content.decode()
    assert "<mark>Cancel</mark> a <mark>task</mark>" in text


@pytest.mark.parametrize("query", ["", "   ", "\x00", "(((", "a" * 5000, "zzzz", "\\", "&" * 50, "é ß İ"])
async def test_search_takes_any_query(client: AsyncClient, query: str) -> None:
    assert (await client.get("/docs/search", {"q": query})).status_code == 200


async def test_strangers_do_not_have_it_made_again_by_asking_under_other_ports() -> None:
    transport = httpx.ASGITransport(get_asgi_application())
    for port in range(8000, 8005):
        origin = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(transport=transport, base_url=origin) as stranger:
            for address in ("/docs", FAMILY_PAGES[0], "/docs/search?q=tasks", "/openapi.json"):
                text = (await stranger.get(address)).text
                assert ORIGIN not in text
                assert (origin in text) is ("search" not in address), address
    assert _pages.cache_info().misses == _openapi_json.cache_info().misses == 1


CALL = {"method": "post", "address": "http://testserver/a?q=1", "needs_key": True, "headers": {"X-A": "1"}}
FORM = {**CALL, "content_type": "multipart/form-data", "body": {"model": "m", "file": "@it's.wav"}}


async def test_a_request_that_was_tried_is_written_in_each_language() -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    written = (await client.post("/docs/programs", FORM, content_type="application/json")).json()
    assert list(written) == ["curl", "Python", "JavaScript"]
    assert """-F 'file=@it'"'"'s.wav'""" in written["curl"]
    assert all("API_KEY" in text and "http://testserver/a?q=1" in text for text in written.values())


@pytest.mark.parametrize(
    ("body", "status"),
    [("", 400), ("[1]", 400), ('{"method": "get"}', 400), ({**FORM, "body": "text"}, 400), (" " * 100_001, 413)],
    ids=str,
)
async def test_what_is_no_request_is_written_in_none(client: AsyncClient, body: Any, status: int) -> None:
    answer = await client.post("/docs/programs", body, content_type="application/json")
    assert (answer.status_code, list(answer.json())) == (status, ["message"])
