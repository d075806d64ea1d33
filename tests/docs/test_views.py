"""The documentation's pages."""

from __future__ import annotations

import html
import re

import pytest
from django.test import AsyncClient

from voiceapp.api import openapi_document
from voiceapp.docs.manual import pages

PAGES = ["/docs", "/docs/manual", *(f"/docs/manual/{page.slug}" for page in pages())]


@pytest.fixture
def client() -> AsyncClient:
    return AsyncClient()


async def test_the_reference_tells_of_every_operation(client: AsyncClient) -> None:
    text = html.unescape((await client.get("/docs")).content.decode())
    for path, operations in openapi_document()["paths"].items():
        assert f"<code>{path}</code>" in text
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in text
            assert f'href="#{operation["operationId"]}"' in text
        assert f""" "http://testserver{path.partition("{")[0]}""" in text


@pytest.mark.parametrize("address", PAGES)
async def test_every_page_works_without_scripts_and_under_the_policy(client: AsyncClient, address: str) -> None:
    answer = await client.get(address)
    assert answer.status_code == 200
    assert "unsafe" not in answer["Content-Security-Policy"]
    text = answer.content.decode()
    for forbidden in ("<script", "<style", " style=", " onclick=", "http://", "https://"):
        assert forbidden not in re.sub(r"<code.*?</code>|https?://testserver", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("address", PAGES)
async def test_every_link_leads_somewhere(client: AsyncClient, address: str) -> None:
    text = (await client.get(address)).content.decode()
    places = set(re.findall(r'id="([^"]+)"', text))
    assert len(places) == len(re.findall(r'id="([^"]+)"', text))
    for target in set(re.findall(r'<a [^>]*href="([^"]+)"', text)):
        if target.startswith("#"):
            assert target[1:] in places
        elif target != "/":
            assert (await client.get(target)).status_code == 200


async def test_the_manual_is_read_from_page_to_page(client: AsyncClient) -> None:
    first, second, *_ = pages()
    text = (await client.get(f"/docs/manual/{first.slug}")).content.decode()
    assert f'rel="next" href="/docs/manual/{second.slug}"' in text
    assert 'rel="prev"' not in text
    text = (await client.get(f"/docs/manual/{second.slug}")).content.decode()
    assert f'rel="prev" href="/docs/manual/{first.slug}"' in text
    assert f'<a href="/docs/manual/{second.slug}" aria-current="page">' in text


@pytest.mark.parametrize("address", ["/docs/manual/nothing", "/docs/manual/..", "/docs/nothing"])
async def test_it_has_no_other_pages(client: AsyncClient, address: str) -> None:
    assert (await client.get(address)).status_code == 404


async def test_it_only_reads(client: AsyncClient) -> None:
    assert (await client.post("/docs")).status_code == 405
