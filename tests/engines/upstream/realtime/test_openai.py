"""A conversation that a service of OpenAI's family holds: what hosted ones do and an installation of ours does not."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from voiceapp.engines.interfaces import Call
from voiceapp.engines.upstream.realtime import connection, openai
from voiceapp.engines.upstream.realtime.provider import UpstreamRealtime
from voiceapp.engines.upstream.realtime.wire_audio import WireConverter
from voiceapp.errors import EngineError, FloodError, InvalidParameter
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.forwarded.reading import wire_of
from voiceapp.protocol.wire import events as ev

KEY = "sk-canary-of-the-operator"
LOGGERS = (connection.__name__, openai.__name__)
PATIENCE_S = 20.0
MUCH = "x" * 10_000
WHERE = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
UNREADABLE = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hm."}, {"type": "input_audio", "audio": "\u00e9"}],
}
"""An item whose audio is not base64."""


class Service:
    """Says `first`, takes settings, and answers `response.create` with five seconds of speech, so many times at
    once; the end of that response is not said."""

    def __init__(self, first: dict[str, Any] | None = None, *, times: int = 1) -> None:
        self._times = times
        self.received: list[dict[str, Any]] = []
        self.handshakes: list[web.Request] = []
        self._first = first or {"type": "session.created", "session": {"type": "realtime", "id": "sess_theirs"}}
        self.refused: dict[str, Any] = {}
        """What is said of settings, unless they are taken."""
        self._news = asyncio.Condition()
        application = web.Application()
        application.router.add_get("/v1/realtime", self._serve)
        self.server = TestServer(application)

    async def wait(self, type_: str, count: int = 1) -> dict[str, Any]:
        """The `count`th event of this type."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: len(self.all(type_)) >= count)
        return self.all(type_)[count - 1]

    def all(self, type_: str) -> list[dict[str, Any]]:
        return [event for event in self.received if event["type"] == type_]

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        self.handshakes.append(request)
        self.socket = web.WebSocketResponse()
        await self.socket.prepare(request)
        await self.socket.send_json(self._first)
        async for message in self.socket:
            event = message.json()
            if event["type"] == "session.update" and self.refused:
                await self.say("error", error=self.refused)
            elif event["type"].endswith("session.update"):
                await self.say(f"{event['type']}d", session=event["session"])
            elif event["type"] == "response.create":
                await self._respond()
            elif event["type"] == "conversation.item.create" and "id" in event["item"]:
                await self.say("conversation.item.added", item=event["item"], previous_item_id=None)
            elif event["type"] == "conversation.item.truncate":
                await self.say("conversation.item.truncated", **{**event, "type": "conversation.item.truncated"})
            async with self._news:
                self.received.append(event)
                self._news.notify_all()
        return self.socket

    async def say(self, type_: str, **fields: Any) -> None:
        await self.socket.send_json({"event_id": "event_1", **fields, "type": type_})

    async def _respond(self) -> None:
        await self.say("response.created", response={"id": "resp_1", "output_modalities": ["audio"]})
        await self.say("response.output_audio_transcript.delta", **WHERE, delta="One two three four five.")
        for _ in range(self._times):
            await self.say("response.output_audio.delta", **WHERE, delta=base64.b64encode(bytes(5 * 48_000)).decode())
        await self.say("response.output_audio.done", **WHERE)


@contextlib.asynccontextmanager
async def serving(service: Service) -> AsyncIterator[UpstreamRealtime]:
    await service.server.start_server()
    model = UpstreamRealtime(
        base_url=str(service.server.make_url("/v1")),
        api_key=KEY,
        model="gpt-realtime",
        dialect="openai",
        transcription_model="whisper-1",
    )
    try:
        yield model
    finally:
        await model.close()
        await service.server.close()


@contextlib.asynccontextmanager
async def conversing(service: Service, **call: Any) -> AsyncIterator[tuple[Any, Any]]:
    """A stream, and a way to wait for its next event of a type."""
    async with serving(service) as model, asyncio.TaskGroup() as tasks:
        stream = model.open(Call(session_id="sess_ours", model="upstream", **call), tasks)
        async with contextlib.aclosing(stream.events()) as events:

            async def until(kind: type[ev.ServerEvent]) -> Any:
                async with asyncio.timeout(PATIENCE_S):
                    async for event in events:
                        if isinstance(event, kind):
                            return event
                raise AssertionError(f"no {kind.type}")

            yield stream, until


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ({"code": "invalid_api_key"}, ("ModelUnavailable", 503)),
        ({"code": "model_not_found"}, ("ModelNotFound", 404)),
        ({"code": "insufficient_quota", "type": "server_error"}, ("Throttling.Concurrency", 429)),
        ({"code": "anything_else", "type": "invalid_request_error"}, ("InvalidParameter", 400)),
        ({"code": None, "type": "rate_limit_error"}, ("Throttling.Concurrency", 429)),
        ({"code": None, "type": "server_error"}, ("ModelUnavailable", 503)),
        ({"code": ["x"], "type": None}, ("InvalidParameter", 400)),
    ],
)
async def test_a_refusal_in_the_first_event_has_a_status_here(
    error: dict[str, Any], found: tuple[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    first = {"type": "error", "error": {**error, "message": f"Not with {KEY}.{MUCH}"}}
    async with serving(Service(first)) as model:
        with pytest.raises(EngineError) as refused:
            await model.prepare(Call(session_id="sess_1", model="upstream"))
    assert (refused.value.code, refused.value.http_status) == found
    logged = "".join(record.getMessage() for record in caplog.records if record.name in LOGGERS)
    assert logged.startswith("session sess_1: the service of UPSTREAM refused it: ")
    assert str(error["code"] or error["type"]) in logged
    assert len(logged) < 400
    assert KEY not in refused.value.for_operators + logged


async def test_the_handshake_is_that_of_the_family() -> None:
    service = Service()
    async with serving(service) as model:
        await model.prepare(Call(session_id="sess_1", model="upstream"))
    (asked,) = service.handshakes
    assert dict(asked.query) == {"model": "gpt-realtime"}
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert "OpenAI-Beta" not in asked.headers


async def test_a_session_that_only_transcribes_names_no_model() -> None:
    service = Service()
    async with serving(service) as model:
        await model.prepare(Call(session_id="sess_1", model="upstream", listens_only=True))
    (asked,) = service.handshakes
    assert dict(asked.query) == {"intent": "transcription"}


async def test_words_of_the_caller_are_asked_for_and_sound_has_their_rate() -> None:
    service = Service()
    opening = {"output_audio_format": {"type": "pcm", "sample_rate": 8_000}}
    async with conversing(service, opening=opening) as (stream, until):
        created = await until(ev.SessionCreated)
        assert created.session["audio"]["output"]["format"] == {"type": "pcm", "sample_rate": 8_000}
        (update,) = service.all("session.update")
        assert update["session"]["audio"]["input"]["transcription"] == {"model": "whisper-1"}
        for _ in range(10):
            await stream.receive(ev.AudioAppend(audio=bytes(3_200)))  # 0.1 s at 16 kHz
        await stream.receive(ev.AudioCommit())
        await service.wait("input_audio_buffer.commit")
        sizes = [len(base64.b64decode(event["audio"])) for event in service.all("input_audio_buffer.append")]
        assert abs(sum(sizes) - 48_000) < 200
        await stream.receive(ev.ResponseCreate())
        reply = len((await until(ev.AudioDelta)).audio) + len((await until(ev.AudioDelta)).audio)
        assert abs(reply - 5 * 16_000) < 200


async def test_the_service_learns_what_a_caller_who_interrupts_has_heard() -> None:
    """It sends faster than is heard."""
    service = Service(times=12)
    async with conversing(service) as (stream, until):
        await until(ev.SessionCreated)
        await stream.receive(ev.ResponseCreate())
        await until(ev.AudioDone)
        await service.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_2")
        await until(ev.SpeechStarted)
        truncated = await until(ev.ItemTruncated)
        asked = await service.wait("conversation.item.truncate")
        assert (asked["item_id"], asked["audio_end_ms"]) == ("item_1", truncated.audio_end_ms)
        assert truncated.audio_end_ms < 50_000
        assert f"{truncated.transcript}{truncated.unheard}" == "One two three four five."
        assert truncated.unheard


@pytest.mark.parametrize(
    ("source", "target", "size"),
    [
        (AudioFormat("pcm16", 16_000), AudioFormat("pcm16", 24_000), 48_000),
        (AudioFormat("g711_ulaw", 8_000), AudioFormat("pcm16", 24_000), 192_000),
        (AudioFormat("pcm16", 24_000), AudioFormat("g711_alaw", 8_000), 16_000 * 8_000 // 24_000),
        (AudioFormat("pcm16", 24_000), AudioFormat("wav", 16_000), 32_000 * 16_000 // 24_000 + 44),
    ],
)
def test_sound_keeps_its_length_from_one_format_to_another(source: AudioFormat, target: AudioFormat, size: int) -> None:
    converter = WireConverter(source, target)
    assert converter.is_needed
    half = bytes(16_000)
    converted = converter.convert(half) + converter.convert(half) + converter.flush()
    assert abs(len(converted) - size) < 100
    assert converted.startswith(b"RIFF") is (target.name == "wav")


def test_a_torn_sample_is_put_together() -> None:
    same, other = AudioFormat("pcm16", 24_000), AudioFormat("g711_ulaw", 8_000)
    converter = WireConverter(same, same, is_stream=True)
    assert converter.passes(4)
    assert not converter.passes(3)
    assert converter.convert(b"abc") == b"ab"
    assert not converter.passes(4)
    assert converter.convert(b"defgh") == b"cdefgh"
    assert converter.passes(4)
    assert WireConverter(other, other, is_stream=True).passes(3)


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        WireConverter(AudioFormat("pcm16", 16_000), AudioFormat("pcm16", 24_000)).convert(b"123")


async def test_what_is_not_base64_is_refused_and_the_session_goes_on() -> None:
    service = Service()
    async with conversing(service) as (stream, until):
        await until(ev.SessionCreated)
        await stream.receive(ev.ItemCreate(item=UNREADABLE))
        refused = await until(ev.ErrorEvent)
        assert (refused.code, refused.param) == ("invalid_value", "item.content[1].audio")
        assert refused.message == "audio must be base64."
        await stream.receive(ev.SessionUpdate(session={"output_audio_format": {"type": "pcm", "sample_rate": 8_000}}))
        await until(ev.SessionUpdated)
        await service.say("response.output_audio.delta", **WHERE, delta="\u00e9")
        await service.say("response.output_audio.done", **WHERE)
        await until(ev.AudioDone)


async def test_refusals_are_told_while_the_service_is_silent() -> None:
    async with conversing(Service()) as (stream, until):
        await until(ev.SessionCreated)
        refused = asyncio.create_task(until(ev.ErrorEvent))
        for _ in range(20):  # in each step of what receives
            await asyncio.sleep(0)
            await stream.receive(ev.ItemCreate(item=UNREADABLE))
        await refused
        for _ in range(19):
            await until(ev.ErrorEvent)


async def test_a_session_ends_at_last_though_the_service_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FINISH_S", 0.05)
    service = Service()
    async with conversing(service) as (stream, until):
        await until(ev.SessionCreated)
        await service.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_2")
        await until(ev.SpeechStarted)
        await stream.receive(ev.AudioAppend(audio=bytes(3_200)))
        await stream.receive(ev.SessionFinish())
        await service.wait("input_audio_buffer.commit")
        await until(ev.SessionFinished)
        sizes = [len(base64.b64decode(event["audio"])) for event in service.all("input_audio_buffer.append")]
        assert abs(sum(sizes) - 4_800) < 100


async def test_a_caller_who_reads_no_refusals_is_cut_off() -> None:
    async with conversing(Service()) as (stream, until):
        await until(ev.SessionCreated)
        for _ in range(connection.MOST_TOLD):
            await stream.receive(ev.ItemCreate(item=UNREADABLE))
        with pytest.raises(FloodError):
            await stream.receive(ev.ItemCreate(item=UNREADABLE))


async def test_settings_that_the_service_refuses_are_told_once_to_the_operator(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = Service()
    async with conversing(service) as (_, until):
        service.refused = {"code": "invalid_value", "message": MUCH}
        await until(ev.SessionCreated)
        await service.say("error", error=service.refused)
        await until(ev.ErrorEvent)
    (logged,) = [record.getMessage() for record in caplog.records if record.name in LOGGERS]
    assert logged.startswith("session sess_ours: the service did not take the settings: invalid_value: xxx")
    assert len(logged) < 400


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "1" * 400])
def test_a_message_with_a_number_that_is_none_is_left_out(number: str) -> None:
    assert wire_of(f'{{"type": "session.created", "session": {{"temperature": {number}}}}}') is None
    assert wire_of('{"type": "session.created", "session": {"temperature": 0.8, "max": 4096}}') is not None


async def test_a_caller_who_truncates_knows_best_what_was_heard() -> None:
    """The first time, the service has been told before, and takes no truncation that leaves more."""
    async with conversing(service := Service(times=12)) as (stream, until):
        await until(ev.SessionCreated)
        for number in range(2):
            await stream.receive(ev.ResponseCreate())
            await until(ev.AudioDone)
            await service.say("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_2")
            await until(ev.SpeechStarted)
            if not number:
                most_ms = (await until(ev.ItemTruncated)).audio_end_ms
                await stream.receive(ev.ItemTruncate(item_id="item_1", audio_end_ms=most_ms + 500))
                assert (await until(ev.ItemTruncated)).audio_end_ms == most_ms
        await stream.receive(ev.ItemTruncate(item_id="item_1", audio_end_ms=0))
        assert (await until(ev.ItemTruncated)).audio_end_ms == 0


async def test_recordings_that_a_response_reads_have_their_rate() -> None:
    def items(audio: str) -> list[dict[str, Any]]:
        return [{"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": audio}]}]

    async with conversing(service := Service()) as (stream, until):
        await until(ev.SessionCreated)
        await stream.receive(ev.ResponseCreate(response={"conversation": "none", "input": items("\u00e9")}))
        assert (await until(ev.ErrorEvent)).param == "response.input[0].content[0].audio"
        tenth = base64.b64encode(bytes(3_200)).decode()  # at 16 kHz
        await stream.receive(ev.ResponseCreate(response={"conversation": "none", "input": items(tenth)}))
        (item,) = (await service.wait("response.create"))["response"]["input"]
        assert abs(len(base64.b64decode(item["content"][0]["audio"])) - 4_800) < 100


async def test_an_item_with_sound_is_answered() -> None:
    """It looks like those that the service makes of speech."""
    sound = base64.b64encode(bytes(320)).decode()
    spoken = {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": sound}]}
    async with conversing(service := Service()) as (stream, until):
        await until(ev.SessionCreated)
        await stream.receive(ev.ItemCreate(item=spoken))
        await until(ev.ItemCreated)
        await service.say("input_audio_buffer.cleared")
        await until(ev.AudioCleared)
        async with asyncio.timeout(PATIENCE_S):
            await stream.wait_idle()
