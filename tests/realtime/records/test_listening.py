"""Operators who listen in: what they hear, who may, and how the caller learns of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import numpy as np
import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import EventsHeard, call
from tests.realtime.test_admin import end
from tests.realtime.test_models import begin
from tests.realtime.webrtc.caller import calling
from tests.serving import manage
from voiceapp.accounts.models import Membership
from voiceapp.engines.interfaces import Samples
from voiceapp.protocol.openai_realtime.settings import session_to
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.records import listening
from voiceapp.realtime.records.listening import OperatorListener
from voiceapp.realtime.records.sound import RATE_HZ

PATIENCE_S = 25.0
MEMBER = """
from django.contrib.auth.models import Permission, User
alice = User.objects.get(username="alice")
alice.is_staff = True
alice.save()
codes = ("listen_realtimesession", "view_realtimesession", "change_realtimesession")
alice.user_permissions.set(Permission.objects.filter(codename__in=codes))
"""
AUDIT = "select change_message from django_admin_log where object_id = ? and change_message like ?"


# ── With the real server ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def heard_product(serve: Serve) -> Product:
    product = serve(MAX_LISTENERS="1", DEFAULT_VOICE="")
    status, log = manage("shell", "--verbosity", "0", "--command", MEMBER, environment=product.environment)
    assert status == 0, log
    return product


class Desk:
    """An operator's browser: a member of the account of all callers here, who may look, ask and listen in."""

    def __init__(self, product: Product, browser: aiohttp.ClientSession) -> None:
        self._product, self._browser = product, browser

    def token(self) -> str:
        return next(cookie.value for cookie in self._browser.cookie_jar if cookie.key == "csrftoken")

    async def sign_in(self) -> None:
        login = f"{self._product.origin}{reverse('login')}"
        await self._browser.get(login)
        form = {"username": "alice", "password": "alice-password", "csrfmiddlewaretoken": self.token()}
        await self._browser.post(login, data=form)
        assert "sessionid" in {cookie.key for cookie in self._browser.cookie_jar}

    async def sign_out(self) -> None:
        await self._browser.post(f"{self._product.origin}{reverse('logout')}", headers={"X-CSRFToken": self.token()})

    async def listen(self, session_id: str) -> aiohttp.ClientResponse:
        """Press the button on the page of a conversation."""
        address = f"{self._page(session_id)}listen/"
        return await self._browser.post(address, headers={"X-CSRFToken": self.token()})

    async def say(self, session_id: str, words: str) -> None:
        form = {"csrfmiddlewaretoken": self.token(), "kind": "say", "words": words}
        await self._browser.post(f"{self._page(session_id)}ask/", data=form)

    async def watch(self, session_id: str, words: str) -> None:
        """Keep the page open until it shows words; it is told when to look."""
        live = f"{self._product.origin}/admin/realtime/realtimesession/live/"
        async with asyncio.timeout(PATIENCE_S), self._browser.get(live, params={"row": session_id}) as stream:
            async for line in stream.content:
                if line.startswith(b"data"):
                    async with self._browser.get(self._page(session_id)) as page:
                        _, _, shown = (await page.text()).partition('id="live-words"')
                    if words in shown.partition("</dl>")[0]:
                        return

    def _page(self, session_id: str) -> str:
        return f"{self._product.origin}/admin/realtime/realtimesession/{quote(session_id)}/"


@asynccontextmanager
async def signed_in(product: Product) -> AsyncIterator[Desk]:
    jar = aiohttp.CookieJar(unsafe=True)  # of an IP address
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        desk = Desk(product, browser)
        await desk.sign_in()
        yield desk


@pytest.fixture
async def ear(heard_product: Product) -> AsyncIterator[Desk]:
    async with signed_in(heard_product) as desk:
        yield desk


class Sound:
    """What an operator has heard so far."""

    def __init__(self) -> None:
        self._bytes, self._news = bytearray(), asyncio.Event()

    def loud(self, side: int) -> np.ndarray[Any, Any]:
        """Return where a side was loud: 0 is the caller's, 1 the reply's."""
        samples = np.frombuffer(self._bytes[: len(self._bytes) // 4 * 4], np.int16).reshape(-1, 2)
        return np.flatnonzero(np.abs(samples[:, side].astype(int)) > 1000)

    async def collect(self, response: aiohttp.ClientResponse) -> None:
        async for piece in response.content.iter_any():
            self._bytes += piece
            self._news.set()

    async def until_loud(self, side: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.loud(side)) < RATE_HZ / 8:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def conversation(product: Product, transport: str) -> AsyncIterator[tuple[EventsHeard, Callable[[Samples], Any]]]:
    if transport == "webrtc":
        async with calling(product.origin, product.keys["good"]) as caller:
            yield caller, caller.microphone.say
    else:
        async with call(product.url, product.keys["good"], has_microphone=True) as talker:
            yield talker, talker.say


def notices(caller: EventsHeard) -> list[bool]:
    """Return, for each `session.updated`, whether it says that an operator listens."""
    return ["operator_listening" in event["session"] for event in caller.all("session.updated")]


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
async def test_an_operator_hears_both_sides_of_a_caller_who_is_told(
    heard_product: Product, voices: Callable[[str], Samples], ear: Desk, transport: str
) -> None:
    async with conversation(heard_product, transport) as (caller, say):
        (created,) = caller.all("session.created")
        session_id = created["session"]["id"]
        assert "operator_listening" not in created["session"]
        await heard_product.row("select id from realtime_realtimesession where id = ?", session_id)
        responses, sound = await asyncio.gather(*(ear.listen(session_id) for _ in range(3))), Sound()
        assert sorted(response.status for response in responses) == [200, 409, 409]
        (response,) = (response for response in responses if response.status == 200)
        assert notices(caller) == [True]
        told = caller.all("session.updated")[0]["session"]
        assert session_to(told)["operator_listening"] is True, "in OpenAI's dialect as well"
        collecting = asyncio.create_task(sound.collect(response))
        await caller.wait("response.done")
        assert caller.all("response.audio_transcript.done")[0]["transcript"].startswith("An operator is now listening")
        await sound.until_loud(1)
        assert len(sound.loud(0)) == 0
        await say(voices("What time is it?"))
        await sound.until_loud(0)

        refused = await ear.listen(session_id)
        assert refused.status == 409
        assert "MAX_LISTENERS allows: 1" in await refused.text()

        response.close()
        collecting.cancel()
        await caller.wait("session.updated", count=2)
        assert notices(caller) == [True, False]
        await heard_product.row(AUDIT, session_id, "Listened in for %.")
        (asked,) = heard_product.rows(AUDIT, session_id, "Asked to listen in.")
        assert asked

        again = await ear.listen(session_id)
        assert again.status == 200
        await ear.sign_out()
        await Sound().collect(again)
        await ear.sign_in()
        again = await ear.listen(session_id)
        assert again.status == 200
    await Sound().collect(again)  # until the conversation has ended


async def test_another_process_shows_the_words_has_sentences_said_and_names_the_one_that_is_heard(
    heard_product: Product, serve: Serve
) -> None:
    other = serve(MAX_LISTENERS="1", DATABASE_URL=heard_product.environment["DATABASE_URL"])
    async with conversation(heard_product, "websocket") as (caller, _), signed_in(other) as desk:
        session_id = caller.all("session.created")[0]["session"]["id"]
        row = await heard_product.row("select served_by from realtime_realtimesession where id = ?", session_id)
        watching = asyncio.create_task(desk.watch(session_id, "We close in five minutes."))
        await desk.say(session_id, "We close in five minutes.")
        await caller.wait("response.done")
        await watching
        refused = await desk.listen(session_id)
        assert refused.status == 409
        assert f"The process {row['served_by']} holds this conversation" in await refused.text()
        assert notices(caller) == []


async def test_a_caller_who_cannot_be_told_aloud_is_not_heard(heard_product: Product, ear: Desk) -> None:
    async with call(heard_product.url, heard_product.keys["good"], query="&intent=transcription") as talker:
        session_id = talker.all("session.created")[0]["session"]["id"]
        await heard_product.row("select id from realtime_realtimesession where id = ?", session_id)
        refused = await ear.listen(session_id)
        assert refused.status == 409
        assert "cannot be told aloud" in await refused.text()
        await talker.send("session.update", session={})
        await talker.wait("session.updated")
        assert notices(talker) == [False]


# ── Who may ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_takes_a_setting_and_a_permission_of_its_own(
    transactional_db: None, desk: Client, alice: Member, charlie: Member, settings: Settings
) -> None:
    session = begin(alice, served_by="host:1:abc")
    clerk, client = User.objects.create_user("clerk", is_staff=True), Client()
    membership = Membership.objects.create(user=clerk, account=alice.account)
    others = ("view_realtimesession", "change_realtimesession", "view_recording")
    clerk.user_permissions.set(Permission.objects.filter(codename__in=others))
    client.force_login(clerk)
    page = reverse("admin:realtime_realtimesession_change", args=[quote(session.pk)])
    address = reverse("admin:realtime_listen", args=[quote(session.pk)])

    def seen(by: Client) -> tuple[bool, int]:
        """Whether the page offers it, and what comes of it. Here, another process holds the conversation."""
        return address in by.get(page).content.decode(), by.post(address).status_code

    assert seen(desk) == (False, 404)
    settings.MAX_LISTENERS = 2
    assert seen(desk) == (True, 409)
    assert seen(client) == (False, 403)
    clerk.user_permissions.add(Permission.objects.get(codename="listen_realtimesession"))
    assert seen(client) == (True, 409)
    assert "The process host:1:abc holds this conversation" in desk.post(address).content.decode()
    assert client.get(address).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(clerk)
    assert strict.post(address).status_code == 403
    clerk.is_staff = False
    clerk.save()
    assert client.post(address).status_code == 403
    clerk.is_staff = True
    clerk.save()
    membership.account = charlie.account
    membership.save()
    assert client.post(address).status_code == 404
    end(session)
    assert seen(desk) == (False, 409)
    assert desk.post(address).content.decode() == "This conversation is over."


# ── A listener who does not read ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("limits", "is_over"),
    [({}, False), ({"MOST_UNREAD_BYTES": 1000}, True), ({"MOST_UNREAD_S": 0.01}, True), ({"LONGEST_S": 0}, True)],
)
async def test_one_who_does_not_read_costs_a_bounded_buffer(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, float], is_over: bool
) -> None:
    monkeypatch.setattr(listening, "PERIOD_S", 0)
    for name, value in limits.items():
        monkeypatch.setattr(listening, name, value)
    requests: asyncio.Queue[OperatorListener] = asyncio.Queue()
    listener = OperatorListener(requests)
    listening.listening().add(listener)
    listener.ask()
    assert await requests.get() is listener
    listener.begin({})
    if "LONGEST_S" in limits:
        assert [piece async for piece in listener.read()] == []
    for _ in range(10):
        listener.add(ev.AudioAppend(audio=bytes(200)))
    if "MOST_UNREAD_S" in limits:
        await asyncio.wait_for(listener.over.wait(), PATIENCE_S)
    assert listener.over.is_set() is is_over
    assert requests.qsize() == is_over, "the conversation learns of the end, once"
    assert (listener in listening.listening()) is not is_over
    listener.end()
