"""The page "Connect your program": what it shows, and the keys that people make on it."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import AsyncClient
from django.utils import timezone

from tests.conftest import Member
from voiceapp.accounts.keys import parse
from voiceapp.accounts.models import ApiKey
from voiceapp.accounts.own_keys import AT_ONCE
from voiceapp.docs.connect import FOLDER, LIBRARIES, Program, addressed

ADDRESS = "/docs/connect"
KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{49}\b")
EXAMPLES = [example for library in LIBRARIES for example in library.examples]
MAX_LINES = 25
LONGER = {"browser.html": 30}
WITHOUT_KEY = ("browser.html",)
"""A page of which visitors may see every word."""


def words_of(response: HttpResponse) -> str:
    """The page without the marks that colour programs."""
    return html.unescape(re.sub(r"</?span[^>]*>", "", response.content.decode()))


async def page_of(client: AsyncClient) -> str:
    return words_of(await client.get(ADDRESS))


def test_every_file_is_shown_once() -> None:
    assert sorted(example.file for example in EXAMPLES) == sorted(path.name for path in FOLDER.iterdir())
    assert len({example.id for example in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.file)
def test_a_program_is_short_and_has_an_address_and_a_key_to_replace(example: Program) -> None:
    program = example.program("https://voice.example.org", "sk-mine")
    assert len([line for line in program.splitlines() if line]) <= LONGER.get(example.file, MAX_LINES)
    assert "voice.example.org" in program
    assert ("sk-mine" in program) == (example.file not in WITHOUT_KEY)
    assert not re.search(r"localhost|sk-…|(http|ws)://", program)


def test_sockets_have_the_scheme_of_pages() -> None:
    assert addressed("ws://localhost:8000/v1", "https://a.example") == "wss://a.example/v1"
    assert addressed("http://localhost:8000/v1", "http://a.example:81") == "http://a.example:81/v1"


async def test_it_shows_every_program_with_the_address_of_the_server() -> None:
    text = await page_of(AsyncClient())
    for example in EXAMPLES:
        assert example.program("http://testserver") in text
        assert f'href="#{example.id}"' in text
        assert f'id="{example.id}"' in text


async def test_it_works_without_scripts_and_under_the_policy() -> None:
    answer = await AsyncClient().get(ADDRESS)
    assert "unsafe" not in answer["Content-Security-Policy"]
    text = re.sub(r"<code.*?</code>", "", answer.content.decode(), flags=re.DOTALL)
    assert set(re.findall(r"<script[^>]*>([^<]*)", text)) == {""}
    assert not re.search(r"<style| style=| onclick=", text)


@pytest.mark.django_db
async def test_a_guest_makes_no_key() -> None:
    client = AsyncClient()
    assert "/login?next=/docs/connect" in await page_of(client)
    assert (await client.post(ADDRESS)).status_code == 302
    assert await ApiKey.objects.acount() == 0


async def test_who_is_signed_in_makes_a_key_that_the_programs_contain(alice: Member) -> None:
    client = AsyncClient()
    await client.aforce_login(alice.user)
    assert not KEY.search(await page_of(client))

    made = await client.post(ADDRESS)

    assert "no-store" in made["Cache-Control"]
    (key,) = set(KEY.findall(words_of(made)))
    row = await ApiKey.objects.aget(name="Made by alice")
    assert bytes(row.digest) == parse(key)
    assert row.workspace_id == alice.workspace.pk
    assert row.scopes == ["realtime", "inference", "tasks"]
    assert timedelta(days=29) < row.expires_at - timezone.now() < timedelta(days=31)
    assert EXAMPLES[0].program("http://testserver", key) in words_of(made)
    assert not KEY.search(await page_of(client))


async def test_a_person_has_few_of_them(alice: Member, bob: Member) -> None:
    client = AsyncClient()
    await client.aforce_login(alice.user)
    for _ in range(AT_ONCE):
        await client.post(ADDRESS)
    refused = (await client.post(ADDRESS)).content.decode()
    assert "You have made 5 keys" in refused
    assert await ApiKey.objects.filter(name="Made by alice").acount() == AT_ONCE

    await ApiKey.objects.filter(name="Made by alice").aupdate(revoked_at=timezone.now())
    assert KEY.search((await client.post(ADDRESS)).content.decode())
    await client.aforce_login(bob.user)
    assert KEY.search((await client.post(ADDRESS)).content.decode())


async def test_a_page_of_another_site_makes_none(alice: Member) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(alice.user)
    assert (await client.post(ADDRESS)).status_code == 403
    assert not await ApiKey.objects.filter(name="Made by alice").aexists()
