"""Events, audio, results and time in any order: what must hold whatever happens, and that it happens twice alike."""

from __future__ import annotations

import base64
import itertools
from collections import defaultdict
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.protocol.conversations import SILENCE, SPEECH, Conversation, Wire
from voiceapp.protocol.session import FINISH_S
from voiceapp.protocol.states import LIVE, SessionState
from voiceapp.protocol.work import (
    Abandon,
    ItemRecognitionFailed,
    ItemRecognized,
    JudgeTurn,
    RecognitionFailed,
    Recognize,
    Recognized,
    RecognizeItem,
    ReplyAudio,
    ReplyCall,
    ReplyEnded,
    ReplyFailed,
    ReplySpoken,
    ReplyText,
    ReplyUsed,
    Respond,
    TurnJudged,
)

WORDS = st.sampled_from(["", "What", "What time", "What time is it?"])
AUDIO_FORMATS = ["pcm", "pcm16", "wav", {"type": "pcm", "sample_rate": 8_000}]
UPDATES = st.fixed_dictionaries(
    {},
    optional={
        "modalities": st.sampled_from([["text"], ["text", "audio"]]),
        "output_audio_format": st.sampled_from(AUDIO_FORMATS),
        "max_history_turns": st.integers(1, 3),
        "turn_detection": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["server_vad", "semantic_vad"]),
                "threshold": st.sampled_from([-1, 0.2, 0.5, 1]),
                "silence_duration_ms": st.none() | st.sampled_from([200, 800]),
                "create_response": st.booleans(),
                "interrupt_response": st.booleans(),
            },
        )
        | st.just({"type": "server_vad", "idle_timeout_ms": 5000}),
    },
)


class Ledger:
    """Reads the events as a strict client does."""

    def __init__(self) -> None:
        self.live: set[str] = set()
        self.ended: set[str] = set()
        self.said: dict[str, str] = defaultdict(str)
        self.audio: dict[str, int] = defaultdict(int)
        self.speaking: str | None = None
        self.is_finished = False

    def read(self, event: Wire) -> None:
        kind = event["type"]
        assert not self.is_finished, f"{kind} after session.finished"
        if kind == "session.finished":
            assert not self.live
            self.is_finished = True
        elif kind == "input_audio_buffer.speech_started":
            assert self.speaking is None
            self.speaking = event["item_id"]
        elif kind == "input_audio_buffer.speech_stopped":
            assert self.speaking == event["item_id"]
            self.speaking = None
        elif kind == "response.created":
            response_id = event["response"]["id"]
            assert not self.live
            assert response_id not in self.ended
            self.live.add(response_id)
        elif kind == "response.done":
            self._done(event["response"])
        elif kind.startswith("response."):
            assert event["response_id"] in self.live, f"{kind} outside its response"
            self._part(kind, event)

    def _part(self, kind: str, event: Wire) -> None:
        if kind == "response.audio.delta":
            self.audio[event["response_id"]] += len(base64.b64decode(event["delta"]))
        elif kind.endswith(".delta"):
            self.said[event["item_id"]] += event["delta"]
        elif kind in ("response.audio_transcript.done", "response.text.done", "response.function_call_arguments.done"):
            whole = event.get("transcript", event.get("text", event.get("arguments")))
            assert self.said[event["item_id"]] == whole

    def _done(self, response: Wire) -> None:
        assert response["status"] in ("completed", "incomplete", "failed", "cancelled")
        self.live.remove(response["id"])
        self.ended.add(response["id"])
        for item in response["output"]:
            assert item["status"] == ("completed" if response["status"] == "completed" else "incomplete")


class Script:
    """One conversation, step by step; a step is a name and plain values, so that it can be played again."""

    def __init__(self) -> None:
        self.talk = Conversation()
        self.ledger = Ledger()
        self.steps: list[tuple[str, tuple[Any, ...]]] = []
        self.asked: list[Respond] = []
        """Every answer that was asked for, old ones too."""
        self.pushed: dict[str, int] = defaultdict(int)
        self._read = 0

    def play(self, name: str, *values: Any) -> None:
        self.steps.append((name, values))
        getattr(self, f"_{name}")(*values)
        self.talk.wait(0)
        self.talk.collect()
        for event in itertools.islice(self.talk.events, self._read, None):
            self.ledger.read(event)
        self._read = len(self.talk.events)
        found = [work for work in self.talk.work if isinstance(work, Respond)]
        self.asked += found
        self.talk.work = [work for work in self.talk.work if not isinstance(work, Respond)]

    def _hear(self, ms: int, probability: float) -> None:
        self.talk.hear(ms, probability)

    def _wait(self, ms: int) -> None:
        self.talk.wait(ms)

    def _tell(self, kind: str, fields: dict[str, Any]) -> None:
        self.talk.tell(kind, **fields)

    def _about_item(self, kind: str, position: int, fields: dict[str, Any]) -> None:
        items = self.talk.session.conversation.items
        item_id = items[position % len(items)].id if items else "item_none"
        self.talk.tell(kind, item_id=item_id, **fields)

    def _obey(self) -> None:
        """Stop what the session abandoned."""
        for abandoned in [work for work in self.talk.work if isinstance(work, Abandon)]:
            self.talk.work = [w for w in self.talk.work if getattr(w, "item_id", None) != abandoned.item_id]

    def _work(self, position: int, words: str, probability: float, fails: bool) -> None:
        """Finish some work, in any order and perhaps too late."""
        if not self.talk.work:
            return
        work = self.talk.work.pop(position % len(self.talk.work))
        session, now = self.talk.session, self.talk.now
        if isinstance(work, Recognize) and fails:
            session.done(RecognitionFailed(work, "ModelUnavailable", "The engine is away."), now)
        elif isinstance(work, Recognize):
            session.done(Recognized(work, words), now)
        elif isinstance(work, RecognizeItem) and fails:
            session.done(ItemRecognitionFailed(work.item_id, "ModelUnavailable", "The engine is away."), now)
        elif isinstance(work, RecognizeItem):
            session.done(ItemRecognized(work.item_id, words), now)
        elif isinstance(work, JudgeTurn):
            session.done(TurnJudged(work.item_id, work.version, probability), now)

    def _answer(self, back: int, how: str, number: int, words: str) -> None:
        """A step of the latest answer, or of one before it."""
        if not self.asked:
            return
        work = self.asked[-1 - back % len(self.asked)]
        session, now, response_id = self.talk.session, self.talk.now, work.response_id
        if how == "text":
            session.done(ReplyText(response_id, words), now)
        elif how == "audio" and work.config.speaks:
            size = work.config.output_format.size(number)
            self.pushed[response_id] += size
            session.done(ReplyAudio(response_id, bytes(size)), now)
        elif how == "spoken":
            session.done(ReplySpoken(response_id, number), now)
        elif how == "used":
            session.done(ReplyUsed(response_id, number, number), now)
        elif how == "call":
            session.done(ReplyCall(response_id, number % 2, "call_1", "weather", words), now)
        elif how == "end":
            session.done(ReplyEnded(response_id, ("stop", "length", "tool_calls")[number % 3]), now)
        elif how == "fail":
            session.done(ReplyFailed(response_id, "ModelUnavailable", "The engine is away."), now)


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.script = Script()

    @property
    def talk(self) -> Conversation:
        return self.script.talk

    def is_open(self) -> bool:
        return self.talk.session.state is SessionState.ACTIVE

    def has_items(self) -> bool:
        return self.is_open() and bool(self.talk.session.conversation.items)

    def has_work(self) -> bool:
        return bool(self.talk.work)

    def has_answers(self) -> bool:
        return bool(self.script.asked)

    @rule(ms=st.sampled_from([32, 96, 192, 320, 960]), probability=st.sampled_from([SILENCE, 0.4, SPEECH]))
    def hear(self, ms: int, probability: float) -> None:
        self.script.play("hear", ms, probability)

    @precondition(is_open)
    @rule(speech_ms=st.sampled_from([160, 320, 960]), silence_ms=st.sampled_from([0, 192, 384, 960]))
    def speak(self, speech_ms: int, silence_ms: int) -> None:
        self.script.play("hear", speech_ms, SPEECH)
        self.script.play("hear", silence_ms, SILENCE)

    @rule(ms=st.sampled_from([1, 50, 500, 2100, 5100]))
    def wait(self, ms: int) -> None:
        self.script.play("wait", ms)

    @precondition(is_open)
    @rule(
        kind=st.sampled_from(
            ["input_audio_buffer.commit", "input_audio_buffer.clear", "response.create", "response.cancel"]
        )
    )
    def tell(self, kind: str) -> None:
        self.script.play("tell", kind, {})

    @precondition(is_open)
    @rule(session=UPDATES)
    def update(self, session: dict[str, Any]) -> None:
        self.script.play("tell", "session.update", {"session": session})

    @precondition(is_open)
    @rule(
        item=st.sampled_from(
            [
                {"role": "user", "content": "Hello"},
                {"role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]},
                {"type": "function_call_output", "call_id": "call_1", "output": "Rain"},
            ]
        ),
        before=st.sampled_from([None, "root"]),
    )
    def create_item(self, item: dict[str, Any], before: str | None) -> None:
        self.script.play("tell", "conversation.item.create", {"item": item, "previous_item_id": before})

    @precondition(has_items)
    @rule(position=st.integers(0, 5), audio_end_ms=st.integers(0, 3000))
    def truncate(self, position: int, audio_end_ms: int) -> None:
        fields = {"content_index": 0, "audio_end_ms": audio_end_ms}
        self.script.play("about_item", "conversation.item.truncate", position, fields)

    @precondition(has_items)
    @rule(position=st.integers(0, 5))
    def delete(self, position: int) -> None:
        self.script.play("about_item", "conversation.item.delete", position, {})

    @precondition(has_work)
    @rule()
    def obey(self) -> None:
        self.script.play("obey")

    @precondition(has_work)
    @rule(position=st.integers(0, 5), words=WORDS, probability=st.floats(0, 1), fails=st.booleans())
    def work(self, position: int, words: str, probability: float, fails: bool) -> None:
        self.script.play("work", position, words, probability, fails)

    @precondition(has_answers)
    @rule(
        back=st.sampled_from([0, 0, 0, 0, 1]),
        how=st.sampled_from(["text", "audio", "audio", "spoken", "used", "call", "end", "fail"]),
        number=st.sampled_from([0, 1, 2, 40, 120, 2000]),
        words=WORDS,
    )
    def answer(self, back: int, how: str, number: int, words: str) -> None:
        self.script.play("answer", back, how, number, words)

    @precondition(has_answers)
    @rule(ms=st.sampled_from([50, 250, 3000]), ends=st.booleans())
    def reply(self, ms: int, ends: bool) -> None:
        self.script.play("answer", 0, "text", 0, "It is noon. ")
        self.script.play("answer", 0, "audio", ms, "")
        self.script.play("answer", 0, "spoken", 12, "")
        if ends:
            self.script.play("answer", 0, "end", 0, "")

    @precondition(is_open)
    @rule(lot=st.integers(0, 99))
    def finish(self, lot: int) -> None:
        if lot == 57:  # seldom: little can happen afterwards
            self.script.play("tell", "session.finish", {})

    @invariant()
    def what_is_live_for_the_client_is_live_here(self) -> None:
        response = self.talk.session.response
        live = {response.id} if response and response.state in LIVE else set()
        assert self.script.ledger.live == live

    @invariant()
    def no_timer_is_left_behind(self) -> None:
        timer = self.talk.session.next_timer()
        assert timer is None or timer > self.talk.now
        assert timer is None or not self.talk.session.is_finished

    @invariant()
    def no_audio_is_invented(self) -> None:
        header = 44  # of a WAV stream
        for response_id, sent in self.script.ledger.audio.items():
            assert sent <= self.script.pushed[response_id] + header

    @invariant()
    def every_end_is_recorded(self) -> None:
        assert {record.ordinal for record in self.talk.records} == set(range(1, len(self.script.ledger.ended) + 1))

    def teardown(self) -> None:
        self.script.play("tell", "session.finish", {})
        self.script.play("wait", FINISH_S * 1000 + 1)
        assert self.script.ledger.is_finished
        assert not self.script.ledger.live
        while self.talk.work:  # results that come after the end
            self.script.play("work", 0, "Hello", 1.0, False)
        again = Script()
        for name, values in self.script.steps:
            again.play(name, *values)
        assert again.talk.events == self.talk.events
        assert again.talk.records == self.talk.records


AnyOrder.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestAnyOrder = AnyOrder.TestCase
