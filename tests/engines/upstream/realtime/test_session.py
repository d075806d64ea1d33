"""A conversation that a service elsewhere holds, with a small honest service at the other end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from voiceapp.engines.interfaces import Call, NextResponse
from voiceapp.engines.upstream.realtime import connection
from voiceapp.engines.upstream.realtime.connection import MAX_MESSAGE_BYTES
from voiceapp.engines.upstream.realtime.provider import UpstreamRealtime
from voiceapp.engines.upstream.realtime.session import UpstreamSession
from voiceapp.errors import EngineError, EngineUnavailable
from voiceapp.protocol.forwarded.texts import ForwardedEvent, ForwardedMessage
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, TurnEnded

KEY = "sk-canary-of-the-operator"
PATIENCE_S = 20.0
STILL_S = 1.0
"""Nothing moves for this long: whoever sends has to wait."""
MIB = 1024 * 1024
MESSAGES = 400
"""Of 100 kB: several times what the buffers of a connection hold."""
SETTINGS = {"turn_detection": {"type": "server_vad", "create_response": True}, "voice": "anna"}
DONE = {"id": "resp_1", "status": "completed", "usage": {"input_tokens": 7, "output_tokens": 9}}

Script = Callable[["Session"], Awaitable[None]]


class Session:
    """One connection of the service's: says `session.created` and takes settings and items; a script does the rest."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.received: list[dict[str, Any]] = []
        self.settings: dict[str, Any] = dict(SETTINGS)
        self.answers = True
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self._news = asyncio.Condition()

    async def say(self, type_: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"type": type_, "event_id": "event_1", **fields}))

    async def wait(self, type_: str) -> dict[str, Any]:
        """The first event of this type."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: self.all(type_))
        return self.all(type_)[0]

    async def next(self) -> None:
        """Until one more event has come."""
        count = len(self.received)
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: len(self.received) > count)

    def all(self, type_: str) -> list[dict[str, Any]]:
        return [event for event in self.received if event["type"] == type_]

    async def respond(self) -> None:
        """A response of words and a second of sound, without its end."""
        where = {"response_id": "resp_1", "item_id": "item_a", "output_index": 0, "content_index": 0}
        await self.say("response.created", response={"id": "resp_1", "modalities": ["text", "audio"]})
        item = {"id": "item_a", "type": "message", "role": "assistant", "content": []}
        await self.say("conversation.item.created", item=item, previous_item_id=None)
        await self.say("response.audio_transcript.delta", **where, delta="Hello.")
        await self.say("response.audio.delta", **where, delta=base64.b64encode(bytes(48_000)).decode())

    async def finish_response(self) -> None:
        content = [{"type": "audio", "transcript": "Hello."}]
        item = {"id": "item_a", "type": "message", "role": "assistant", "content": content}
        await self.say("response.output_item.done", response_id="resp_1", output_index=0, item=item)
        await self.say("response.done", response=DONE)

    async def read(self) -> None:
        async for message in self.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            event = json.loads(message.data)
            if not self.answers:
                pass
            elif event["type"] == "session.update":
                self.settings.update(event["session"])
                await self.say("session.updated", session={"id": "theirs", **self.settings})
            elif event["type"] == "conversation.item.create":
                await self.say("conversation.item.created", item=event["item"], previous_item_id=None)
            async with self._news:
                self.received.append(event)
                self._news.notify_all()
            await self.is_reading.wait()


class Service:
    def __init__(self, *scripts: Script) -> None:
        self.sessions: list[Session] = []
        self.handshakes: list[web.Request] = []
        self._scripts = list(scripts)
        application = web.Application()
        application.router.add_get("/api-ws/v1/realtime", self._serve)
        self.server = TestServer(application)

    def follow(self, *scripts: Script) -> None:
        """Have the next connections follow these."""
        self._scripts = list(scripts)

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        self.handshakes.append(request)
        socket = web.WebSocketResponse(max_msg_size=64 * MIB)
        await socket.prepare(request)
        session = Session(socket)
        self.sessions.append(session)
        await session.say("session.created", session={"id": "theirs", "model": "their-model", **SETTINGS})
        reading = asyncio.create_task(session.read())
        try:
            if self._scripts:
                await self._scripts.pop(0)(session)
            await reading
        finally:
            reading.cancel()
        return socket


class Conversation:
    """The caller's side of a stream: what comes out of it."""

    def __init__(self, stream: UpstreamSession) -> None:
        self.stream = stream
        self.came: list[ev.ServerEvent | PlayoutCut | TurnEnded] = []
        self.failure: EngineError | None = None
        self.is_over = False
        self.takes = asyncio.Event()
        self.takes.set()
        self._news = asyncio.Condition()

    async def run(self) -> None:
        try:
            async with contextlib.aclosing(self.stream.events()) as events:
                async for event in events:
                    await self._note(event)
                    await self.takes.wait()
        except EngineError as error:
            self.failure = error
        async with self._news:
            self.is_over = True
            self._news.notify_all()

    async def _note(self, event: ev.ServerEvent | PlayoutCut | TurnEnded) -> None:
        async with self._news:
            self.came.append(event)
            self._news.notify_all()

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: is_so() or self.is_over)
        assert is_so(), self.came

    async def wait(self, type_: str, count: int = 1) -> dict[str, Any]:
        """The `count`th event of this type, as the caller reads it."""
        await self.until(lambda: len(self.all(type_)) >= count)
        return self.all(type_)[count - 1]

    def all(self, type_: str) -> list[dict[str, Any]]:
        told = [event for event in self.came if isinstance(event, ev.ServerEvent)]
        return [event.to_wire() for event in told if _kind(event) == type_]

    @property
    def types(self) -> list[str]:
        return [_kind(event) for event in self.came if isinstance(event, ev.ServerEvent)]

    @property
    def turns(self) -> list[TurnEnded]:
        return [event for event in self.came if isinstance(event, TurnEnded)]


def _kind(event: ev.ServerEvent) -> str:
    return event.kind if isinstance(event, ForwardedEvent) else event.type


def append(n_bytes: int = 640) -> ForwardedMessage:
    text = json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(n_bytes)).decode()})
    return ForwardedMessage(text=text, audio_bytes=n_bytes)


@contextlib.asynccontextmanager
async def conversing(
    service: Service, *, limit_s: float = 0.0, **call: Any
) -> AsyncIterator[tuple[Conversation, Service]]:
    await service.server.start_server(shutdown_timeout=0.1)  # one that does not read would be waited for
    model = UpstreamRealtime(
        base_url=str(service.server.make_url("/")),
        api_key=KEY,
        model="their-model",
        headers={"X-DashScope-WorkSpace": "ws-1"},
        session_limit_s=limit_s,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            about = Call(session_id="sess_ours", model="upstream", **{"is_forwarded": True, **call})
            conversation = Conversation(model.open(about, tasks))
            running = tasks.create_task(conversation.run())
            yield conversation, service
            running.cancel()
    finally:
        for session in service.sessions:
            session.is_reading.set()  # the server waits a minute for one that does not
        await model.close()
        await service.server.close()


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_service_that_falls_silent_is_left_for_a_new_session(
    monkeypatch: pytest.MonkeyPatch, *, is_begun: bool
) -> None:
    monkeypatch.setattr("voiceapp.protocol.forwarded.session.SILENT_S", 0.3)

    async def falls_silent(session: Session) -> None:
        await session.wait("response.create")
        if is_begun:
            await session.respond()

    async def answers(session: Session) -> None:
        await session.wait("response.create")
        await session.respond()
        await session.finish_response()

    async with conversing(Service(falls_silent, answers), is_forwarded=False) as (conversation, service):
        await conversation.wait("session.created")
        await conversation.stream.receive(ev.ResponseCreate())
        error = await conversation.wait("error")
        assert "did not answer in time; the conversation goes on" in error["error"]["message"]
        if is_begun:
            done = (await conversation.wait("response.done"))["response"]
            assert (done["id"], done["status"]) == ("resp_1", "failed")
        await conversation.stream.receive(ev.ResponseCreate())
        done = (await conversation.wait("response.done", 1 + is_begun))["response"]
        assert done["status"] == "completed"
        assert len(service.sessions) == 2


async def test_a_service_that_is_asked_nothing_may_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voiceapp.protocol.forwarded.session.SILENT_S", 0.1)

    async def answers_late(session: Session) -> None:
        await asyncio.sleep(0.4)
        await session.respond()
        await session.finish_response()

    async with conversing(Service(answers_late), is_forwarded=False) as (conversation, service):
        done = (await conversation.wait("response.done"))["response"]
        assert (done["status"], len(service.sessions)) == ("completed", 1)


async def nothing(session: Session) -> None:
    """Only what every session does."""


@pytest.mark.parametrize(
    ("status", "headers", "found"),
    [
        (401, {}, ("ModelUnavailable", 503, 1)),
        (403, {}, ("ModelUnavailable", 503, 1)),
        (404, {}, ("ModelNotFound", 404, 1)),
        (400, {}, ("InvalidParameter", 400, 1)),
        (429, {"Retry-After": "7"}, ("Throttling.Concurrency", 429, 7)),
        (429, {"Retry-After": "tomorrow"}, ("Throttling.Concurrency", 429, 1)),
        (503, {"Retry-After": "9"}, ("ModelUnavailable", 503, 9)),
        (500, {}, ("ModelUnavailable", 503, 1)),
        (504, {}, ("ResponseTimeout", 504, 1)),
        (200, {}, ("ModelUnavailable", 503, 1)),
    ],
)
async def test_a_refusal_of_the_services_has_a_status_here(
    status: int, headers: dict[str, str], found: tuple[str, int, int], caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers, text=f"Not with {request.headers['Authorization']}.")

    application = web.Application()
    application.router.add_get("/api-ws/v1/realtime", refuse)
    server = TestServer(application)
    await server.start_server()
    model = UpstreamRealtime(base_url=str(server.make_url("/")), api_key=KEY, model="")
    with pytest.raises(EngineError) as refused:
        await model.prepare(Call(session_id="sess_1", model="upstream"))
    assert (refused.value.code, refused.value.http_status, refused.value.retry_after_s) == found
    assert KEY not in refused.value.for_operators + caplog.text
    await model.close()
    await server.close()


async def test_a_service_that_is_not_there_is_said_to_be(unused_tcp_port: int) -> None:
    model = UpstreamRealtime(base_url=f"http://127.0.0.1:{unused_tcp_port}", api_key=KEY, model="")
    with pytest.raises(EngineUnavailable) as refused:
        await model.prepare(Call(session_id="sess_1", model="upstream"))
    assert refused.value.message == "The service that runs this model cannot be reached."
    assert "UPSTREAM_BASE_URL" in refused.value.remedy
    await model.close()


async def test_the_handshake_carries_our_key_and_their_name() -> None:
    async with conversing(Service(), time_zone="Europe/Vienna", listens_only=True) as (conversation, service):
        created = await conversation.wait("session.created")
        assert (created["session"]["id"], created["session"]["model"]) == ("sess_ours", "upstream")
        (asked,) = service.handshakes
        assert asked.headers["Authorization"] == f"Bearer {KEY}"
        assert asked.headers["X-DashScope-WorkSpace"] == "ws-1"
        assert dict(asked.query) == {
            "model": "their-model",
            "time_zone": "Europe/Vienna",
            "intent": "transcription",
        }


async def test_settings_of_the_handshake_are_in_force_when_the_session_is_created() -> None:
    async with conversing(Service(), opening={"voice": "bert"}, is_forwarded=False) as (conversation, _):
        assert (await conversation.wait("session.created"))["session"]["voice"] == "bert"
        assert "session.updated" not in conversation.types


@pytest.mark.parametrize("is_forwarded", [True, False])
async def test_a_service_gets_no_setting_that_is_not_known_here(is_forwarded: bool) -> None:
    given = {"voice": "bert", "tracing": "auto"}
    wire = {"type": "session.update", "session": given}
    update = ForwardedMessage(text=json.dumps(wire), wire=wire) if is_forwarded else ev.SessionUpdate(session=given)
    async with conversing(Service(), is_forwarded=is_forwarded) as (conversation, service):
        await conversation.stream.receive(update)
        await service.sessions[0].wait("session.update")
        (received,) = service.sessions[0].received
        assert received["session"] == {"voice": "bert"}


async def test_texts_pass_as_they_are_and_the_turn_is_recorded() -> None:
    raw = '{ "type": "vendor.own", "more":  [1] }'

    async def script(session: Session) -> None:
        await session.wait("input_audio_buffer.append")
        await session.socket.send_str(raw)
        await session.respond()
        await session.finish_response()

    async with conversing(Service(script)) as (conversation, service):
        sent = ForwardedMessage(text='{ "type":"input_audio_buffer.append","audio":"AAAA" }', audio_bytes=3)
        await conversation.stream.receive(sent)
        await conversation.until(lambda: conversation.turns)
        assert raw in [event.text for event in conversation.came if isinstance(event, ForwardedEvent)]
        assert service.sessions[0].received == [{"type": "input_audio_buffer.append", "audio": "AAAA"}]
        (turn,) = conversation.turns
        assert (turn.ordinal, turn.status, turn.assistant_text, turn.heard_text) == (1, "completed", "Hello.", "Hello.")
        assert (turn.output_audio_ms, turn.input_tokens, turn.output_tokens) == (1000, 7, 9)


async def test_frames_that_are_no_events_are_left_out_and_our_key_is_never_among_them() -> None:
    async def script(session: Session) -> None:
        await session.socket.send_bytes(b"\0\1")
        for text in ("", "{", "[]", '{"type":7}', '{"type":"response.done"}', '{"type":"session.updated","session":0}'):
            await session.socket.send_str(text)
        await session.say("vendor.note", note=f"Bearer {KEY}")
        await session.respond()
        await session.finish_response()

    async with conversing(Service(script)) as (conversation, _):
        await conversation.until(lambda: conversation.turns)
        assert conversation.all("vendor.note")[0]["note"] == "Bearer ***"
        assert KEY not in repr(conversation.came)


@pytest.mark.parametrize("is_forwarded", [True, False])
async def test_a_lost_session_goes_on_in_a_new_one(is_forwarded: bool) -> None:
    """With its settings and what was said; the caller is told once, and the response that was cut off is ended."""

    async def lose(session: Session) -> None:
        await session.wait("response.create")
        await session.respond()
        await session.socket.close(code=1012)

    async def go_on(session: Session) -> None:
        await session.wait("input_audio_buffer.commit")
        await session.say("input_audio_buffer.committed", item_id="item_b")

    async with conversing(Service(lose, go_on), is_forwarded=is_forwarded) as (conversation, service):
        item = {"id": "item_u", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
        for event in (
            ev.SessionUpdate(session={"voice": "bert", "turn_detection": {"create_response": False}}),
            ev.ItemCreate(item=item),
            ev.ResponseCreate(),
        ):
            await conversation.stream.receive(event)
        error = (await conversation.wait("error"))["error"]
        assert (error["code"], error["type"]) == ("upstream_connection_lost", "server_error")
        assert (await conversation.wait("response.done"))["response"]["status"] == "failed"
        await conversation.stream.receive(ev.AudioCommit())
        await conversation.wait("input_audio_buffer.committed")

        assert [(turn.status, turn.user_text) for turn in conversation.turns] == [("failed", "Hi.")]
        again = service.sessions[1].received
        settings = {"voice": "bert", "turn_detection": {"create_response": False}}
        assert again[0] == {"type": "session.update", "session": settings}
        assert [event["item"] for event in again if event["type"] == "conversation.item.create"] == [item]
        assert conversation.types.count("session.created") == 1
        assert conversation.types.count("error") == 1


async def test_what_a_lost_session_had_not_answered_is_asked_of_the_next() -> None:
    async def lose(session: Session) -> None:
        await session.wait("response.create")
        await session.socket.close(code=1012)

    async def go_on(session: Session) -> None:
        await session.wait("response.create")
        await session.respond()
        await session.finish_response()

    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    async with conversing(Service(lose, go_on)) as (conversation, service):
        await conversation.wait("session.created")
        service.sessions[0].answers = False
        await conversation.stream.receive(ev.SessionUpdate(session={"voice": "bert"}))
        await conversation.stream.receive(ev.ItemCreate(item=item))
        await conversation.stream.receive(ev.ResponseCreate())
        assert (await conversation.wait("session.updated"))["session"]["voice"] == "bert"
        await conversation.wait("response.done")
        await conversation.until(lambda: conversation.turns)
        again = [event["type"] for event in service.sessions[1].received]
        assert again == ["session.update", "conversation.item.create", "response.create"]
        assert conversation.turns[0].user_text == "Hi."


async def test_a_session_is_replaced_at_a_silence_and_nobody_is_told() -> None:
    async def talk(session: Session) -> None:
        await session.wait("response.create")
        await session.respond()
        await session.wait("input_audio_buffer.clear")  # long after the limit
        await session.finish_response()

    second = asyncio.Event()

    async def go_on(session: Session) -> None:
        await session.wait("conversation.item.create")
        second.set()

    async with conversing(Service(talk, go_on), limit_s=0.3) as (conversation, service):
        await conversation.stream.receive(ev.ResponseCreate())
        await conversation.wait("response.audio.delta")
        await asyncio.sleep(0.5)
        assert len(service.sessions) == 1  # a response is under way
        await conversation.stream.receive(ev.AudioClear())
        await asyncio.wait_for(second.wait(), PATIENCE_S)
        told = list(conversation.types)
        await conversation.stream.receive(ev.AudioCommit())
        await service.sessions[1].wait("input_audio_buffer.commit")
        assert conversation.types == told
        assert told[-1] == "response.done"
        (item,) = [event["item"] for event in service.sessions[1].all("conversation.item.create")]
        assert item == {
            "id": "item_a",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "Hello."}],
        }


async def test_what_was_asked_while_no_new_session_could_be_begun_is_asked_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "SEND_S", 0.5)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 1_000_000}]}
    asking, began = asyncio.Event(), asyncio.Event()

    async def talk(session: Session) -> None:
        await session.wait("response.create")
        await session.respond()
        await session.finish_response()
        await session.say(ev.SessionClosing.type)

    async def stall(session: Session) -> None:
        session.answers = False
        began.set()
        event = await session.wait("conversation.item.create")
        await asking.wait()
        session.is_reading.clear()
        await session.say("conversation.item.created", item=event["item"], previous_item_id=None)

    async with conversing(Service(talk, stall)) as (conversation, service):
        await conversation.stream.receive(ev.ResponseCreate())
        await conversation.wait("response.done")
        await asyncio.wait_for(began.wait(), PATIENCE_S)
        events = [ev.ItemCreate(item={**item, "id": f"item_{number}"}) for number in range(20)]
        asks = [asyncio.create_task(conversation.stream.receive(event)) for event in events]
        await asyncio.sleep(0)  # each of them has begun to wait
        asking.set()
        await asyncio.gather(*asks)
        old = service.sessions[0]
        while len(old.all("conversation.item.create")) < len(events):
            await old.next()
        assert [event["item"]["id"] for event in old.all("conversation.item.create")] == [
            event.item["id"] for event in events
        ]


@pytest.mark.parametrize("code", [1008, 4401, 4402, 4408])
async def test_a_session_that_is_ended_for_good_is_not_begun_again(code: int) -> None:
    async def end(session: Session) -> None:
        await session.socket.close(code=code)

    async with conversing(Service(end)) as (conversation, service):
        await conversation.until(lambda: conversation.failure)
        assert isinstance(conversation.failure, EngineUnavailable)
        assert len(service.sessions) == 1


async def test_a_service_that_ends_every_session_is_given_up() -> None:
    async def end(session: Session) -> None:
        await session.socket.close(code=1011)

    async with conversing(Service(*[end] * 8)) as (conversation, service):
        await conversation.until(lambda: conversation.failure)
        assert len(service.sessions) <= 5


async def test_a_message_that_is_too_large_ends_the_session_there_only() -> None:
    async def shout(session: Session) -> None:
        await session.say("vendor.note", note="x" * (MAX_MESSAGE_BYTES + 1))

    async def go_on(session: Session) -> None:
        await session.say("vendor.greeting")

    async with conversing(Service(shout, go_on)) as (conversation, _):
        await conversation.wait("vendor.greeting")
        assert not conversation.all("vendor.note")


async def test_a_response_that_the_budget_does_not_allow_is_stopped_there_and_not_heard_here() -> None:
    asked: list[NextResponse] = []

    async def refuse(response: NextResponse) -> str:
        asked.append(response)
        return "The budget is used up."

    async def script(session: Session) -> None:
        await session.wait("response.create")
        await session.respond()
        cancelled = await session.wait("response.cancel")
        await session.say("response.done", response={"id": cancelled["response_id"], "status": "cancelled"})
        await session.say("vendor.note")

    async with conversing(Service(script), before_response=refuse) as (conversation, _):
        await conversation.stream.receive(ev.ResponseCreate())
        await conversation.wait("vendor.note")
        await asyncio.wait_for(conversation.stream.wait_idle(), PATIENCE_S)
        assert not [kind for kind in conversation.types if kind.startswith("response.")]
        assert not conversation.turns
        assert [response.ordinal for response in asked] == [1]


async def until_still(count: Callable[[], int]) -> int:
    """What a count has come to when it does not grow any more."""
    seen = -1
    while count() != seen:
        seen = count()
        await asyncio.sleep(STILL_S)
    return seen


async def test_a_caller_who_does_not_read_holds_the_service_up() -> None:
    sent = 0

    async def shout(session: Session) -> None:
        nonlocal sent
        await session.wait("response.create")
        for _ in range(MESSAGES):
            await session.say("vendor.note", note="x" * 100_000)
            sent += 1

    async with conversing(Service(shout)) as (conversation, _):
        await conversation.wait("session.created")
        conversation.takes.clear()
        await conversation.stream.receive(ev.ResponseCreate())
        assert await until_still(lambda: sent) < MESSAGES / 2
        conversation.takes.set()
        await conversation.until(lambda: len(conversation.came) > MESSAGES)


async def test_a_service_that_reads_no_more_has_lost_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SEND_S", 0.5)

    async def stall(session: Session) -> None:
        session.is_reading.clear()

    async def go_on(session: Session) -> None:
        await session.say("vendor.greeting")

    async with conversing(Service(stall, go_on)) as (conversation, _):
        await conversation.wait("session.created")
        for _ in range(MESSAGES):
            wire = {"type": "vendor.note", "note": "x" * 100_000}
            await conversation.stream.receive(ForwardedMessage(text=json.dumps(wire), wire=wire))
        await conversation.wait("vendor.greeting")


async def test_a_session_that_only_transcribes_expects_no_response_and_is_replaced() -> None:
    async def hear(session: Session) -> None:
        await session.say("input_audio_buffer.speech_started", item_id="item_a", audio_start_ms=0)
        await session.say("input_audio_buffer.speech_stopped", item_id="item_a", audio_end_ms=500)
        await session.say("input_audio_buffer.committed", item_id="item_a")
        await session.say("session.closing", code=4000, reason="The session was long enough.")

    async def go_on(session: Session) -> None:
        await session.say("vendor.greeting")

    async with conversing(Service(hear, go_on), listens_only=True) as (conversation, _):
        await conversation.wait("vendor.greeting")
        assert not conversation.all("error")


async def test_a_reply_is_waited_for_that_is_still_played() -> None:
    """The service has sent a minute at once, and said that this was all."""

    async def script(session: Session) -> None:
        await session.wait("input_audio_buffer.append")
        await session.respond()
        where = {"response_id": "resp_1", "item_id": "item_a", "output_index": 0, "content_index": 0}
        await session.say("response.audio.delta", **where, delta=base64.b64encode(bytes(48_000 * 60)).decode())
        await session.finish_response()
        await session.wait("input_audio_buffer.clear")
        await session.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_u")
        await session.say("input_audio_buffer.speech_stopped", audio_end_ms=10, item_id="item_u", reason="noise")

    async with conversing(Service(script), has_track=True, is_forwarded=False) as (conversation, _):
        await conversation.stream.receive(ev.AudioAppend(audio=bytes(640)))
        await conversation.until(lambda: conversation.turns)
        idle = asyncio.create_task(conversation.stream.wait_idle())
        for _ in range(100):
            await asyncio.sleep(0)
        assert not idle.done()
        await conversation.stream.receive(ev.AudioClear())
        await asyncio.wait_for(idle, PATIENCE_S)


@pytest.mark.parametrize("is_forwarded", [True, False])
async def test_times_are_counted_from_the_first_session(is_forwarded: bool) -> None:
    """Of two seconds, the next one is sent the latter again."""

    async def lose(session: Session) -> None:
        while len(session.all("input_audio_buffer.append")) < 100:
            await session.next()
        await session.say("vendor.note")
        await session.socket.close(code=1012)

    async def go_on(session: Session) -> None:
        await session.say("input_audio_buffer.speech_started", audio_start_ms=200, item_id="item_b")
        await session.say("input_audio_buffer.speech_stopped", audio_end_ms=700, item_id="item_b")

    async with conversing(Service(lose, go_on), is_forwarded=is_forwarded) as (conversation, _):
        for _ in range(100):
            await conversation.stream.receive(append())
        assert (await conversation.wait("input_audio_buffer.speech_started"))["audio_start_ms"] == 1_200
        assert (await conversation.wait("input_audio_buffer.speech_stopped"))["audio_end_ms"] == 1_700
