"""Client libraries that people use already: each, given our address, completes a spoken turn and a typed one."""

from __future__ import annotations

import asyncio
import base64
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dashscope import Client
from dashscope.audio.qwen_omni import MultiModality, OmniRealtimeCallback, OmniRealtimeConversation
from openai import AsyncOpenAI

from tests.engines.speech import word_errors
from tests.realtime.product import Product
from tests.realtime.talker import in_order, pcm_at
from voiceapp.engines.interfaces import Samples

Voices = Callable[[str], Samples]

QUESTION = "What is twelve times twelve?"
ANSWER = "12 times 12 is 144."
TYPED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}
PATIENCE_S = 20.0
BEAT_S = 0.1
"""How much sound one message carries, and how often one is sent."""


def utterance(voices: Voices, rate_hz: int = 16_000) -> Iterator[bytes]:
    """The question and the silence behind it, in pieces."""
    pcm = pcm_at(voices(QUESTION), rate_hz) + bytes(2 * rate_hz)
    size = int(rate_hz * BEAT_S) * 2
    return (pcm[start : start + size] for start in range(0, len(pcm), size))


def text_of(done: dict[str, Any]) -> str:
    assert done["response"]["status"] == "completed"
    return str(done["response"]["output"][0]["content"][0]["transcript"])


class Ears(OmniRealtimeCallback):
    """What the library calls back with, from its own thread."""

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.closed = threading.Event()
        self.close_code: int | None = None

    def on_open(self) -> None:
        pass

    def on_event(self, response: dict[str, Any]) -> None:
        self.events.put(response)

    def on_close(self, close_status_code: int | None, close_msg: str | None) -> None:
        self.close_code = close_status_code
        self.closed.set()

    def wait(self, type_: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] != type_:
            found.append(self.events.get(timeout=PATIENCE_S))
            assert found[-1]["type"] != "error", found[-1]
        return found


def open_conversation(product: Product) -> tuple[OmniRealtimeConversation, Ears]:
    ears = Ears()
    conversation = OmniRealtimeConversation(
        model="qwen3-omni-flash-realtime", callback=ears, url=product.url, api_key=product.keys["good"]
    )
    conversation.connect()
    ears.wait("session.created")
    return conversation, ears


class TestDashscopeConversation:
    """`OmniRealtimeConversation`, the class of the library's first generation."""

    def test_it_completes_a_spoken_turn(self, product: Product, voices: Voices) -> None:
        conversation, ears = open_conversation(product)
        conversation.update_session(output_modalities=[MultiModality.AUDIO, MultiModality.TEXT], voice="Cherry")
        ears.wait("session.updated")

        for piece in utterance(voices):
            conversation.append_audio(base64.b64encode(piece).decode())
        events = ears.wait("response.done")

        (question,) = (event for event in events if event["type"].endswith("input_audio_transcription.completed"))
        assert word_errors(QUESTION, question["transcript"]) <= 1
        assert text_of(events[-1]) == ANSWER
        assert sum(len(event["delta"]) for event in events if event["type"] == "response.audio.delta") > 50_000
        assert conversation.get_last_response_id() == events[-1]["response"]["id"]
        assert conversation.get_last_first_audio_delay() is not None
        conversation.end_session()
        assert ears.closed.wait(PATIENCE_S)
        assert ears.close_code == 1000

    def test_it_completes_a_typed_turn(self, product: Product) -> None:
        conversation, ears = open_conversation(product)

        conversation.create_item(TYPED)
        conversation.create_response()
        events = ears.wait("response.done")

        assert text_of(events[-1]) == ANSWER
        conversation.end_session()

    def test_it_completes_a_turn_that_it_ends_itself(self, product: Product, voices: Voices) -> None:
        conversation, ears = open_conversation(product)
        conversation.update_session(output_modalities=[MultiModality.TEXT], voice="Cherry", enable_turn_detection=False)
        ears.wait("session.updated")

        for piece in utterance(voices):
            conversation.append_audio(base64.b64encode(piece).decode())
        conversation.commit()
        conversation.create_response(instructions="Be brief.", output_modalities=[MultiModality.TEXT])
        events = ears.wait("response.done")

        assert events[-1]["response"]["output"][0]["content"] == [{"type": "text", "text": ANSWER}]
        conversation.end_session()


class TestDashscopeClient:
    """`Client.audio.realtime`, of the library's second generation."""

    @staticmethod
    def receive(session: Any, type_: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] != type_:
            event = session.recv_event()
            assert event is not None, f"closed before {type_}"
            found.append(event)
        return found

    def test_it_completes_a_spoken_and_a_typed_turn(self, product: Product, voices: Voices) -> None:
        with (
            Client(api_key=product.keys["good"], timeout=PATIENCE_S) as client,
            client.audio.realtime.connect(model="qwen3.8-omni-flash-realtime", ws_url=product.url) as session,
        ):
            self.receive(session, "session.created")
            session.update_session(["text", "audio"], voice="Cherry", turn_detection_type="server_vad")
            self.receive(session, "session.updated")
            for piece in utterance(voices):
                session.append_audio(piece)
            spoken = self.receive(session, "response.done")

            session.create_item(TYPED)
            session.create_response()
            typed = self.receive(session, "response.done")

            session.end_session()
            self.receive(session, "session.finished")
            assert session.recv_event() is None

        assert [text_of(spoken[-1]), text_of(typed[-1])] == [ANSWER, ANSWER]


class TestOpenAI:
    """The beta realtime class of OpenAI's library, which reads every event into a typed object."""

    @staticmethod
    def client(product: Product) -> AsyncOpenAI:
        address = f"ws://{product.address}/v1"
        return AsyncOpenAI(api_key=product.keys["good"], websocket_base_url=address, max_retries=0)

    async def test_it_completes_a_typed_turn(self, product: Product) -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            self.client(product).beta.realtime.connect(model="voice") as connection,
        ):
            tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
            await connection.session.update(session={"modalities": ["text"], "tools": [tool], "tool_choice": "none"})
            await connection.conversation.item.create(item=TYPED)
            await connection.response.create()
            async for event in connection:
                assert event.type != "error", event
                if event.type == "session.updated":
                    assert [shown.to_dict() for shown in event.session.tools] == [tool]
                if event.type == "response.text.done":
                    assert event.text == ANSWER
                if event.type == "response.done":
                    break

    async def test_it_completes_a_spoken_turn(self, product: Product, voices: Voices) -> None:
        sound = b""
        async with (
            asyncio.timeout(PATIENCE_S),
            self.client(product).beta.realtime.connect(model="gpt-4o-realtime-preview") as connection,
        ):
            for piece in utterance(voices, 24_000):
                await connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
            async for event in connection:
                assert event.type != "error", event
                if event.type == "conversation.item.input_audio_transcription.completed":
                    require_valid(event)
                    assert word_errors(QUESTION, event.transcript) <= 1
                if event.type == "response.audio.delta":
                    sound += base64.b64decode(event.delta)
                if event.type == "response.done":
                    assert event.response.status == "completed"
                    assert event.response.usage.output_tokens > 0
                    break

        assert len(sound) / 48 > 1000


class TestOpenAICurrent:
    """The realtime class of OpenAI's library that is not beta: events of the current dialect, with their types."""

    @staticmethod
    def client(product: Product) -> AsyncOpenAI:
        return AsyncOpenAI(api_key=product.keys["good"], base_url=f"http://{product.address}/v1", max_retries=0)

    async def test_an_out_of_band_response_reads_its_input_alone(self, product: Product) -> None:
        request = {"conversation": "none", "input": [TYPED], "output_modalities": ["text"], "metadata": {"for": "me"}}
        types = []
        async with (
            asyncio.timeout(PATIENCE_S),
            self.client(product).realtime.connect(model="gpt-realtime") as connection,
        ):
            await connection.response.create(response=request)
            async for event in connection:
                assert event.type != "error", event
                require_valid(event)
                types.append(event.type)
                if event.type == "response.done":
                    break

        assert event.response.output[0].content[0].text == ANSWER
        assert (event.response.conversation_id, event.response.metadata) == (None, {"for": "me"})
        assert not [kind for kind in types if kind.startswith("conversation.")]

    @pytest.mark.parametrize("model", ["gpt-realtime", "voice"])
    async def test_it_completes_a_spoken_and_a_written_turn(self, product: Product, voices: Voices, model: str) -> None:
        sound, words, types = b"", "", []
        async with (
            asyncio.timeout(2 * PATIENCE_S),
            self.client(product).realtime.connect(model=model) as connection,
        ):
            created = await connection.recv()
            assert created.type == "session.created"
            assert created.session.audio.input.format.rate == created.session.audio.output.format.rate == 24_000
            await connection.session.update(session={"type": "realtime", "output_modalities": ["audio"]})
            for piece in utterance(voices, 24_000):
                await connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
            async for event in connection:
                assert event.type != "error", event
                require_valid(event)
                types.append(event.type)
                if event.type == "conversation.item.input_audio_transcription.delta":
                    words += event.delta
                if event.type == "conversation.item.input_audio_transcription.completed":
                    assert word_errors(QUESTION, event.transcript) <= 1
                    assert words == event.transcript
                    assert 1 < event.usage.seconds < 5
                if event.type == "response.output_audio.delta":
                    sound += base64.b64decode(event.delta)
                if event.type == "response.done":
                    assert event.response.status == "completed"
                    assert event.response.output[0].content[0].transcript == ANSWER
                    break

            await connection.conversation.item.create(item=TYPED)
            await connection.response.create(response={"output_modalities": ["text"], "metadata": {"turn": "2"}})
            async for event in connection:
                assert event.type not in ("error", "response.output_audio.delta"), event
                require_valid(event)
                if event.type == "response.created":
                    assert event.response.metadata == {"turn": "2"}
                if event.type == "response.output_text.done":
                    assert event.text == ANSWER
                if event.type == "response.done":
                    break

        assert len(sound) / 48 > 1000
        assert [kind for kind in in_order(types) if kind in ORDER][: len(ORDER)] == ORDER

    async def test_it_transcribes_without_responses(self, product: Product, voices: Voices) -> None:
        heard: list[str] = []
        async with (
            asyncio.timeout(PATIENCE_S),
            self.client(product).realtime.connect(extra_query={"intent": "transcription"}) as connection,
        ):
            created = await connection.recv()
            assert created.session.type == "transcription"
            transcription = {"model": "gpt-4o-transcribe", "language": "en"}
            audio = {"input": {"transcription": transcription, "turn_detection": {"type": "server_vad"}}}
            await connection.session.update(session={"type": "transcription", "audio": audio})
            for piece in utterance(voices, 24_000):
                await connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
            async for event in connection:
                require_valid(event)
                heard.append(event.type)
                if event.type == "conversation.item.input_audio_transcription.completed":
                    assert word_errors(QUESTION, event.transcript) <= 1
                    await connection.response.create()
                if event.type == "error":
                    assert event.error.message == "This session only transcribes: it gives no responses."
                    break

        assert "response.created" not in heard
        query = "select user_text, input_audio_ms from realtime_turn where session_id = ?"
        turn = await product.row(query, created.session.id)
        assert word_errors(QUESTION, turn["user_text"]) <= 1
        assert turn["input_audio_ms"] > 1000


ORDER = [
    "session.updated",
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]


def require_valid(event: Any) -> None:
    """Check an event against the types of the library, which by itself lets anything pass."""
    type(event).model_validate_json(event.model_dump_json(exclude_unset=True), strict=True)
