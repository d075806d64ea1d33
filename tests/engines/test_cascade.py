"""The cascade around small honest engines: what is started, handed on, abandoned and reported."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import numpy as np
import pytest

from voiceapp.engines import reply
from voiceapp.engines.cascade import CascadeStream
from voiceapp.engines.interfaces import (
    AssistantDelta,
    Call,
    ChatDelta,
    ChatModel,
    ChatRequest,
    ChatUsage,
    NextResponse,
    Recognition,
    Samples,
    ToolCallDelta,
    Voice,
)
from voiceapp.engines.models.lanes import moment_needed
from voiceapp.engines.reply import SPARE_S
from voiceapp.errors import EngineUnavailable, FloodError
from voiceapp.protocol.speaking.playout import QUEUE_LIMIT_MS
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, TurnEnded

SECOND = 32_000
LOUD = (np.ones(16_000, dtype="<i2") * 8_000).tobytes()
QUIET = bytes(SECOND)
OUTPUT_BYTES_PER_MS = 48

WEATHER = {"type": "function", "name": "weather", "description": "", "parameters": {"type": "object"}}

Told = ev.ServerEvent | PlayoutCut | TurnEnded


class Level:
    """Voice detection by loudness."""

    def probability(self, frame: Samples) -> float:
        return float(np.abs(frame).mean() > 0.1)

    async def probability_live(self, frame: Samples) -> float:
        return self.probability(frame)

    def reset(self) -> None:
        pass


class Turns:
    """Everybody has finished, as soon as they pause."""

    def __init__(self) -> None:
        self.failure: EngineUnavailable | None = None
        self.probability = 1.0

    async def end_probability(self, audio: Samples) -> float:
        if self.failure:
            raise self.failure
        return self.probability


class Ear:
    languages = ("en",)
    reads_early = True

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.terms: Sequence[str] = ()
        self.words = "hello there"
        self.failure: EngineUnavailable | None = None

    async def recognize(self, audio: Samples, *, terms: Sequence[str] = (), **_: Any) -> Recognition:
        self.lengths.append(len(audio))
        self.terms = terms
        if self.failure:
            raise self.failure
        return Recognition(self.words)


class Writer:
    def __init__(self) -> None:
        self.deltas: list[ChatDelta] = [ChatDelta(text="One sentence. "), ChatDelta(text="Another one.")]
        self.requests: list[ChatRequest] = []
        self.failure: Exception | None = None
        self.waits_before: int | None = None
        self.go = asyncio.Event()
        self.ended = asyncio.Event()
        """Somebody stopped reading, or it has written all."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.requests.append(request)
        try:
            for place, delta in enumerate(self.deltas):
                if place == self.waits_before:
                    await self.go.wait()
                yield delta
            if self.failure:
                raise self.failure
        finally:
            self.ended.set()


class Mouth:
    """Speech of a fixed length for every sentence, in pieces of 100 ms."""

    voices: Sequence[Voice] = (Voice("en-us", "American"),)
    default_voice = "en-us"

    def __init__(self) -> None:
        self.pieces_per_sentence = 2
        self.said: list[str] = []
        self.pieces = 0
        self.needed_at: list[float] = []
        """When each piece was, as lanes are told."""
        self.failure: Exception | None = None
        self.ended = asyncio.Event()
        self.rates: list[float] = []
        self.spoke_with: list[str] = []
        """The voice of each text."""

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        self.said.append(text)
        self.rates.append(rate)
        self.spoke_with.append(voice)
        try:
            if self.failure:
                raise self.failure
            for _ in range(self.pieces_per_sentence):
                self.pieces += 1
                self.needed_at.append(moment_needed())
                yield bytes(100 * OUTPUT_BYTES_PER_MS)
                await asyncio.sleep(0)
        finally:
            self.ended.set()


class Talk:
    """A conversation, and all that came of it so far."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        before_response: Callable[[NextResponse], Awaitable[str]] | None,
        *,
        speculates: bool = False,
        is_far: bool = False,
        chat: ChatModel | None = None,
    ) -> None:
        self.turns, self.ear, self.writer, self.mouth = Turns(), Ear(), Writer(), Mouth()
        self.told: list[Told] = []
        self.between: Callable[[], Any] = lambda: asyncio.sleep(0)
        """What the reader of the events does after each: nothing, or something slow."""
        self.is_over = asyncio.Event()
        self.stream = CascadeStream(
            Call(
                session_id="sess_1",
                model="voice",
                time_zone="Europe/Paris",
                before_response=before_response,
            ),
            tasks,
            detector=Level(),
            turns=self.turns,
            recognizer=self.ear,
            writer=reply.Writer(chat or self.writer, is_far=is_far, speculates=speculates),
            synthesizer=self.mouth,
        )
        self._news = asyncio.Condition()
        self.reading = tasks.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(self.stream.events()) as events:
            async for event in events:
                async with self._news:
                    self.told.append(event)
                    self._news.notify_all()
                await self.between()
        self.is_over.set()

    async def ask(self, text: str = "Hello?") -> None:
        content = [{"type": "input_text", "text": text}]
        await self.stream.receive(ev.ItemCreate(item={"type": "message", "role": "user", "content": content}))
        await self.stream.receive(ev.ResponseCreate())

    async def wait(self, kind: type[Any], count: int = 1) -> Any:
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: len(self.all(kind)) >= count)
        return self.all(kind)[count - 1]

    def all(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    @property
    def audio_ms(self) -> float:
        return sum(len(event.audio) for event in self.all(ev.AudioDelta)) / OUTPUT_BYTES_PER_MS


@asynccontextmanager
async def talking(
    before_response: Callable[[NextResponse], Awaitable[str]] | None = None, **options: Any
) -> AsyncIterator[Talk]:
    async with asyncio.TaskGroup() as tasks:
        talk = Talk(tasks, before_response, **options)
        yield talk
        talk.stream.close()
        talk.reading.cancel()


async def test_speech_becomes_words_becomes_an_answer_becomes_speech() -> None:
    async with talking() as talk:
        await talk.stream.receive(ev.SessionUpdate(session={"input_audio_transcription": {"keywords": ["Siobhan"]}}))
        for pcm in (QUIET, LOUD, QUIET):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))

        done = await talk.wait(ev.ResponseDone)

        assert (await talk.wait(ev.TranscriptionCompleted)).transcript == "hello there"
        assert talk.ear.terms == ("Siobhan",)
        assert done.response["status"] == "completed"
        assert done.response["output"][0]["content"][0]["transcript"] == "One sentence. Another one."
        assert talk.mouth.said == ["One sentence. ", "Another one."]
        assert talk.audio_ms == pytest.approx(4 * 100 + 200, abs=1), "two sentences and the pause between them"
        record = await talk.wait(TurnEnded)
        assert (record.status, record.user_text) == ("completed", "hello there")


async def test_a_turn_says_which_of_several_models_replied() -> None:
    async with talking() as talk:
        talk.writer.deltas = [ChatDelta(text="Here.", served_by="acme/large"), ChatDelta(text=" And there.")]
        await talk.ask()
        assert (await talk.wait(ev.ResponseDone)).response["metrics"]["served_by"] == "acme/large"
        assert (await talk.wait(TurnEnded)).served_by == "acme/large"


async def test_the_chat_model_learns_about_the_conversation() -> None:
    async with talking() as talk:
        settings = {"instructions": "Be kind.", "temperature": 0.5, "top_k": 5}
        await talk.stream.receive(ev.SessionUpdate(session=settings))
        await talk.ask("What now?")
        await talk.wait(ev.ResponseDone)

    (request,) = talk.writer.requests
    assert [message.content for message in request.messages] == ["Be kind.", "What now?"]
    assert (request.temperature, request.extra) == (0.5, {"top_k": 5})
    assert request.facts.time_zone == "Europe/Paris"


async def test_each_response_is_asked_about_before_it_begins() -> None:
    asked: list[NextResponse] = []

    async def before_response(response: NextResponse) -> str:
        asked.append(response)
        return "" if len(asked) == 1 else "Nothing is left."

    async with talking(before_response) as talk:
        await talk.stream.receive(
            ev.SessionUpdate(session={"instructions": "Be kind.", "max_response_output_tokens": 9})
        )
        for pcm in (QUIET, LOUD, QUIET):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))
        await talk.wait(ev.ResponseDone)
        await talk.stream.receive(ev.SessionUpdate(session={"modalities": ["text"]}))
        await talk.ask("Crème?")
        done = (await talk.wait(ev.ResponseDone, 2)).response
        records = [await talk.wait(TurnEnded, count) for count in (1, 2)]

    assert [response.ordinal for response in asked] == [record.ordinal for record in records] == [1, 2]
    assert [response.input_audio_ms for response in asked] == [record.input_audio_ms for record in records]
    assert asked[0].input_audio_ms > 900
    assert [response.speaks for response in asked] == [True, False]
    assert [response.max_tokens for response in asked] == [9, 9]
    read = "Be kind.hello there"
    assert [response.input_bytes for response in asked] == [
        len(read),
        len((read + "One sentence. Another one.Crème?").encode()),
    ]
    assert (done["status"], done["output"][0]["content"][0]["text"]) == ("completed", "Nothing is left.")
    assert len(talk.writer.requests) == 1, "the model did not reply to the second"


async def test_a_sentence_is_spoken_before_the_next_is_written() -> None:
    async with talking() as talk:
        talk.writer.deltas = [ChatDelta(text=text) for text in ("This is a first sentence. ", "So", " on.")]
        talk.writer.waits_before = 2
        await talk.ask()

        await talk.wait(ev.AudioDelta)

        assert not talk.writer.ended.is_set()
        talk.writer.go.set()
        await talk.wait(ev.ResponseDone)


async def test_tools_usage_and_the_reason_to_stop_are_handed_on() -> None:
    async with talking() as talk:
        talk.writer.deltas = [
            ChatDelta(tool_call=ToolCallDelta(0, "call_1", "weather")),
            ChatDelta(tool_call=ToolCallDelta(0, arguments='{"city":')),
            ChatDelta(tool_call=ToolCallDelta(0, arguments=' "Paris"}')),
            ChatDelta(usage=ChatUsage(11, 7), finish_reason="tool_calls"),
        ]
        await talk.stream.receive(ev.SessionUpdate(session={"tools": [WEATHER]}))
        await talk.ask()

        done = (await talk.wait(ev.ResponseDone)).response

        (item,) = done["output"]
        assert (item["type"], item["arguments"]) == ("function_call", '{"city": "Paris"}')
        assert (done["usage"]["input_tokens"], done["usage"]["output_tokens"]) == (11, 7)
        assert talk.mouth.said == []


async def test_an_answer_cut_by_its_length_is_incomplete() -> None:
    async with talking() as talk:
        talk.writer.deltas = [ChatDelta(text="As I was"), ChatDelta(finish_reason="length")]
        await talk.ask()

        done = (await talk.wait(ev.ResponseDone)).response

        assert (done["status"], done["status_details"]["reason"]) == ("incomplete", "max_output_tokens")


async def test_a_change_of_speaking_rate_holds_from_that_answer_on() -> None:
    async with talking() as talk:
        talk.writer.deltas = [AssistantDelta(speech_rate=0.8), ChatDelta(text="Slowly.")]
        await talk.ask()
        await talk.wait(ev.ResponseDone)
        talk.writer.deltas = [ChatDelta(text="Still.")]
        await talk.ask()
        await talk.wait(ev.ResponseDone, 2)

        assert talk.mouth.rates == [0.8, 0.8]


@pytest.mark.parametrize("part", ["writer", "mouth"])
async def test_an_engine_that_fails_fails_the_answer_and_not_the_conversation(part: str) -> None:
    async with talking() as talk:
        getattr(talk, part).failure = EngineUnavailable("The engine is gone.")
        await talk.ask()

        done = (await talk.wait(ev.ResponseDone)).response

        assert done["status"] == "failed"
        assert done["status_details"]["error"]["message"] == "The engine is gone."
        getattr(talk, part).failure = None
        await talk.ask()
        assert (await talk.wait(ev.ResponseDone, 2)).response["status"] == "completed"


async def test_the_caller_hears_that_the_chat_model_is_gone() -> None:
    async with talking() as talk:
        talk.writer.deltas, talk.writer.failure = [], EngineUnavailable("The engine is gone.")
        await talk.ask()

        done = (await talk.wait(ev.ResponseDone)).response

        assert talk.mouth.said == ["I am sorry, I cannot answer right now."]
        assert talk.audio_ms == 200
        assert done["status"] == "failed"
        assert done["status_details"]["error"]["message"] == "The engine is gone."


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("This is the first. And this", ["This is the first.", "And this", "I am sorry, I cannot go on."]),
        ("This is all of it.", ["This is all of it.", "I am sorry, I cannot go on."]),
    ],
)
async def test_the_caller_hears_that_a_reply_broke_off(written: str, said: list[str]) -> None:
    async with talking() as talk:
        talk.writer.deltas, talk.writer.failure = [ChatDelta(text=written)], EngineUnavailable("The engine is gone.")
        await talk.ask()

        done = (await talk.wait(ev.ResponseDone)).response

        assert [piece.strip(" …") for piece in talk.mouth.said] == said
        assert talk.audio_ms == len(said) * 200 + (len(said) - 1) * 200
        assert done["status"] == "failed"
        transcript = done["output"][0]["content"][0]["transcript"]
        assert transcript in (" ".join(said), "… ".join((" ".join(said[:-1]), said[-1])))


async def test_the_apology_is_in_the_language_of_the_session_and_written_where_replies_are() -> None:
    async with talking() as talk:
        talk.writer.deltas, talk.writer.failure = [], EngineUnavailable("The engine is gone.")
        settings = {"modalities": ["text"], "input_audio_transcription": {"language": "de"}}
        await talk.stream.receive(ev.SessionUpdate(session=settings))
        await talk.ask()

        done = (await talk.wait(ev.ResponseDone)).response

        assert talk.mouth.said == []
        assert done["output"][0]["content"][0]["text"] == "Es tut mir leid, ich kann gerade nicht antworten."


async def test_a_turn_that_was_not_understood_is_said_to_be_so_without_the_chat_model() -> None:
    async with talking() as talk:
        talk.ear.words = ""
        for pcm in (QUIET, LOUD, QUIET):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))

        assert (await talk.wait(ev.ResponseDone)).response["status"] == "completed"

        assert talk.mouth.said == ["I did not catch that."]
        assert talk.writer.requests == []


async def test_a_fault_in_an_answer_is_logged_and_told_as_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    async with talking() as talk:
        talk.writer.failure = ZeroDivisionError("secret detail")
        await talk.ask()

        error = (await talk.wait(ev.ResponseDone)).response["status_details"]["error"]

        assert error["code"] == "InternalError"
        assert "secret" not in error["message"]
        assert "secret detail" in caplog.text


async def test_words_that_cannot_be_recognised_are_reported() -> None:
    async with talking() as talk:
        talk.ear.failure = EngineUnavailable("Too busy.")
        for pcm in (QUIET, LOUD, QUIET):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))

        failed = await talk.wait(ev.TranscriptionFailed)

        assert failed.error["message"] == "Too busy."
        await talk.wait(ev.ResponseDone)
        assert talk.mouth.said == ["I did not catch that."]


@pytest.mark.parametrize(
    ("settings", "voice"),
    [
        ({}, "en-us"),
        ({"input_audio_transcription": {"language": "de-AT"}}, "hans"),
        ({"input_audio_transcription": {"language": "en"}}, "en-us"),
        ({"input_audio_transcription": {"language": "fi"}}, "en-us"),
        ({"input_audio_transcription": {"language": "de"}, "voice": "woman"}, "hans"),
        ({"input_audio_transcription": {"language": "de"}, "voice": "Cherry"}, "hans"),
        ({"input_audio_transcription": {"language": "en"}, "voice": "Cherry"}, "Cherry"),
        ({"input_audio_transcription": {"language": "de"}, "voice": "luc"}, "luc"),
        ({"input_audio_transcription": {"language": "de"}, "voice": "nobody"}, "nobody"),
    ],
)
async def test_a_voice_that_speaks_english_gives_way_in_another_language(settings: dict[str, Any], voice: str) -> None:
    async with talking() as talk:
        others = (Voice("hans", "Hans", "de"), Voice("luc", "Luc", "fr"))
        talk.mouth.voices = (Voice("en-us", "American"), Voice("woman", "Woman"), *others)
        await talk.stream.receive(ev.SessionUpdate(session=settings))
        await talk.ask()
        await talk.wait(ev.ResponseDone)
        assert set(talk.mouth.spoke_with) == {voice}


async def test_without_the_turn_model_the_silence_ends_the_turn() -> None:
    async with talking() as talk:
        talk.turns.failure = EngineUnavailable("Too busy.")
        for pcm in (QUIET, LOUD, QUIET):
            await talk.stream.receive(ev.AudioAppend(audio=pcm))

        await talk.wait(ev.AudioCommitted)
        assert (await talk.wait(ev.ResponseDone)).response["status"] == "completed"


@pytest.mark.parametrize("how", ["speech", "cancel", "close"])
async def test_an_answer_not_wanted_any_more_ends_writing_and_speaking(how: str) -> None:
    async with talking() as talk:
        talk.mouth.pieces_per_sentence = 1_000
        talk.writer.deltas = [ChatDelta(text=f"Sentence number {number} of many. ") for number in range(50)]
        await talk.ask()
        await talk.wait(ev.AudioDelta)
        assert not talk.writer.ended.is_set()

        if how == "speech":
            await talk.stream.receive(ev.AudioAppend(audio=LOUD))
        elif how == "cancel":
            await talk.stream.receive(ev.ResponseCancel())
        else:
            (record,) = talk.stream.close()
            assert record.status == "cancelled"

        async with asyncio.timeout(10):
            await talk.writer.ended.wait()
            await talk.mouth.ended.wait()
        if how != "close":
            assert (await talk.wait(ev.ResponseDone)).response["status"] == "cancelled"
            assert (await talk.wait(TurnEnded)).status == "cancelled"


async def test_speaking_does_not_run_away_from_the_listener() -> None:
    async with talking() as talk:
        talk.mouth.pieces_per_sentence = 10_000
        await talk.ask()
        await talk.wait(ev.AudioDelta, 3)

        assert talk.mouth.pieces * 100 <= QUEUE_LIMIT_MS + talk.audio_ms + 200


async def test_speech_is_needed_the_later_the_more_there_is_for_the_listener() -> None:
    async with talking() as talk:
        talk.mouth.pieces_per_sentence = 5
        began = time.monotonic()
        await talk.ask()
        await talk.wait(ev.ResponseDone)

        first, *others = talk.mouth.needed_at
        assert began <= first <= time.monotonic(), "at once"
        steps = [round(later - earlier, 3) for earlier, later in itertools.pairwise(others)]
        assert steps == [0.1, 0.1, 0.1, 0.1, 0.3, 0.1, 0.1, 0.1], "100 ms a piece, and 200 between sentences"
        assert others[0] <= began + 5 + 0.1 - SPARE_S


async def test_a_slow_reader_is_told_everything_before_the_end() -> None:
    async with talking() as talk:
        talk.between = lambda: asyncio.sleep(0.002)
        talk.mouth.pieces_per_sentence = 60
        await talk.ask()
        await talk.wait(ev.AudioDelta)
        await talk.stream.receive(ev.SessionFinish())

        async with asyncio.timeout(10):
            await talk.is_over.wait()

        events = [event for event in talk.told if isinstance(event, ev.ServerEvent)]
        assert isinstance(events[-1], ev.SessionFinished)
        assert talk.all(ev.ResponseDone)[0].response["status"] == "completed"
        assert talk.audio_ms == pytest.approx(2 * 6_000 + 200, abs=1)


async def test_it_is_idle_only_when_the_end_of_the_answer_was_taken() -> None:
    async with talking() as talk:
        talk.between = lambda: asyncio.sleep(0.002)
        await talk.ask()
        async with asyncio.timeout(10):
            await talk.stream.wait_idle()

        assert talk.all(ev.ResponseDone)
        async with asyncio.timeout(10):
            await talk.stream.wait_idle()


async def test_it_is_not_idle_while_words_are_still_recognised() -> None:
    async with talking() as talk:
        await talk.stream.receive(ev.SessionUpdate(session={"turn_detection": None}))
        await talk.stream.receive(ev.AudioAppend(audio=LOUD))
        await talk.stream.receive(ev.AudioCommit())
        async with asyncio.timeout(10):
            await talk.stream.wait_idle()

        assert talk.all(ev.TranscriptionCompleted)


async def test_broken_audio_is_refused_and_survived() -> None:
    async with talking() as talk:
        await talk.stream.receive(ev.AudioAppend(audio=b"odd", event_id="mine"))

        error = await talk.wait(ev.ErrorEvent)

        assert (error.about, error.param) == ("mine", "audio")
        await talk.ask()
        await talk.wait(ev.ResponseDone)


async def test_audio_faster_than_twice_real_time_is_a_flood() -> None:
    async with talking() as talk:
        for _ in range(20):
            await talk.stream.receive(ev.AudioAppend(audio=QUIET))
        with pytest.raises(FloodError, match="twice real time"):  # noqa: PT012 - the next one, unless time passes
            for _ in range(20):
                await talk.stream.receive(ev.AudioAppend(audio=QUIET))


async def test_a_commit_takes_the_last_half_frame_along() -> None:
    async with talking() as talk:
        await talk.stream.receive(ev.SessionUpdate(session={"turn_detection": None}))
        await talk.stream.receive(ev.AudioAppend(audio=LOUD[: 512 * 2 * 20 + 300]))
        await talk.stream.receive(ev.AudioCommit())
        await talk.wait(ev.TranscriptionCompleted)

        assert talk.ear.lengths[-1] == 512 * 21


async def test_audio_in_another_format_is_converted_from_the_update_on() -> None:
    async with talking() as talk:
        audio = {"input": {"format": {"type": "pcm", "sample_rate": 48_000}}}
        await talk.stream.receive(ev.SessionUpdate(session={"turn_detection": None, "audio": audio}))
        await talk.stream.receive(ev.AudioAppend(audio=LOUD * 3))
        await talk.stream.receive(ev.AudioCommit())
        await talk.wait(ev.TranscriptionCompleted)

        assert talk.ear.lengths[-1] == pytest.approx(16_000, abs=600)


@pytest.mark.parametrize(("audio", "is_answered"), [("AAAA" * 4_000, True), ("not base64", False), ("AAAA", False)])
async def test_audio_inside_an_item_is_recognised_or_refused(audio: str, is_answered: bool) -> None:
    async with talking() as talk:
        content = [{"type": "input_audio", "audio": audio}]
        await talk.stream.receive(ev.ItemCreate(item={"type": "message", "role": "user", "content": content}))
        await talk.stream.receive(ev.ResponseCreate())

        await talk.wait(ev.ResponseDone)

        assert bool(talk.all(ev.ErrorEvent)) is not is_answered
        words = [message.content for message in talk.writer.requests[0].messages]
        assert words == (["hello there"] if is_answered else [])
