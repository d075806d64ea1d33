"""A caller with a clock of their own, and engines that answer when the test says so, around one `Session`."""

from __future__ import annotations

import base64
import itertools
import json
import math
from typing import Any, TypeVar

import numpy as np

from voiceapp.protocol.audio import FRAME_MS, FRAME_SAMPLES
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.items import Message
from voiceapp.protocol.session import Session
from voiceapp.protocol.states import EchoRisk
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import (
    ItemRecognitionFailed,
    ItemRecognized,
    JudgeTurn,
    PlayoutCut,
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
    Respond,
    TurnEnded,
    TurnJudged,
    Work,
)

SPEECH = 0.9
SILENCE = 0.01
_FRAME = np.full(FRAME_SAMPLES, 0.25, dtype=np.float32)

Wire = dict[str, Any]
Kind = TypeVar("Kind", bound=Work)


def counted_ids() -> Any:
    """`new_id` that counts, so that two runs of one conversation are the same."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}_{next(numbers)}"


def words_in(work: Respond) -> list[str]:
    """What was said, as the model sees it."""
    return [item.text for item in work.history if isinstance(item, Message)]


class Conversation:
    """Drives one session. Events are read in order: each `assert_event` looks only behind the one before."""

    def __init__(
        self, *, replies_in_english: bool = False, guest_lasts_s: float | None = None, **settings: Any
    ) -> None:
        config = SessionConfig(model="voice", voice="Tina", **settings)
        self.now = 100.0
        self.session = Session(
            session_id="sess_1", config=config, new_id=counted_ids(), replies_in_english=replies_in_english
        )
        self.events: list[Wire] = []
        """Everything the session sent."""
        self.cuts: list[int] = []
        """Where playout was cut: how many events stand before."""
        self.work: list[Work] = []
        """What the session asked for and nobody has taken yet."""
        self.records: list[TurnEnded] = []
        self.reads_early = False
        """A thread is idle for early readings; otherwise they are refused."""
        self._unread = 0
        self.session.open(self.now, guest_lasts_s=guest_lasts_s)
        self.collect()

    # ── The caller ───────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, ms: float) -> None:
        """Speak for so long, in real time."""
        self.hear(ms, SPEECH)

    def hush(self, ms: float) -> None:
        """Send silence for so long, in real time."""
        self.hear(ms, SILENCE)

    def hear(self, ms: float, probability: float, echo: EchoRisk = EchoRisk.NONE) -> None:
        for _ in range(math.ceil(ms / FRAME_MS)):
            self.wait(FRAME_MS)
            self.session.hear(_FRAME, probability, self.now, echo)
            self.collect()

    def wait(self, ms: float) -> None:
        """Send nothing for so long; timers fire on time."""
        until = self.now + ms / 1000
        ticks_now = 0
        while (timer := self.session.next_timer()) is not None and timer <= until:
            ticks_now = ticks_now + 1 if timer <= self.now else 0
            assert ticks_now < 5, "a timer fires for ever without effect"
            self.now = max(self.now, timer)
            self.session.tick(self.now)
            self.collect()
        self.now = until

    def tell(self, kind: str, **fields: Any) -> None:
        """Send one event as a client does; what cannot be read is refused as the bridge does it."""
        self.tell_text(json.dumps({"type": kind, "event_id": "mine", **fields}))

    def tell_text(self, text: str) -> None:
        try:
            self.session.receive(ev.parse_client_event(text), self.now)
        except ev.EventError as refused:
            self.session.refuse(refused, refused.event_id)
        self.collect()

    def update(self, **session: Any) -> None:
        self.tell("session.update", session=session)

    # ── The engines ──────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, kind: type[Kind]) -> Kind:
        found = next((work for work in self.work if isinstance(work, kind)), None)
        assert found is not None, f"no {kind.__name__} was asked for, only {self.work}"
        self.work.remove(found)
        return found

    def asks(self, kind: type[Work]) -> bool:
        return any(isinstance(work, kind) for work in self.work)

    def take_final(self) -> Recognize:
        """The first request for final words; requests for partial ones before it are dropped."""
        while (work := self.take(Recognize)).is_partial:
            pass
        return work

    def recognize(self, words: str, detected: str = "") -> Recognize:
        """Answer the first request for final words."""
        work = self.take_final()
        self.session.done(Recognized(work, words, language=detected or "en", is_detected=bool(detected)), self.now)
        self.collect()
        return work

    def recognize_partly(self, words: str) -> None:
        work = self.take(Recognize)
        assert work.is_partial
        self.session.done(Recognized(work, words), self.now)
        self.collect()

    def recognize_item(self, words: str) -> RecognizeItem:
        """Answer the first request for the words of audio inside an item."""
        work = self.take(RecognizeItem)
        self.session.done(ItemRecognized(work.item_id, words), self.now)
        self.collect()
        return work

    def fail_item(self) -> None:
        self.session.done(
            ItemRecognitionFailed(self.take(RecognizeItem).item_id, "ModelUnavailable", "The engine is away."), self.now
        )
        self.collect()

    def late(self, work: Recognize, words: str, detected: str = "") -> None:
        """Answer a request that was taken before."""
        self.session.done(Recognized(work, words, language=detected or "en", is_detected=bool(detected)), self.now)
        self.collect()

    def sure(self, work: Recognize, words: str, *, confidence: float) -> None:
        """Answer a request with words that the recognizer is so sure of."""
        self.session.done(Recognized(work, words, confidence), self.now)
        self.collect()

    def fail_recognition(self) -> None:
        self.session.done(RecognitionFailed(self.take_final(), "ModelUnavailable", "The engine is away."), self.now)
        self.collect()

    def judge(self, probability: float) -> None:
        work = self.take(JudgeTurn)
        self.session.done(TurnJudged(work.item_id, work.version, probability), self.now)
        self.collect()

    def write(self, response_id: str, text: str) -> None:
        self.session.done(ReplyText(response_id, text), self.now)
        self.collect()

    def speak(self, response_id: str, ms: float, characters: int | None = None) -> None:
        """Synthesize so much at once; with `characters`, it speaks the answer up to there."""
        assert self.session.response is not None
        size = self.session.response.config.output_format.size(ms)
        self.session.done(ReplyAudio(response_id, bytes(size)), self.now)
        if characters is not None:
            self.session.done(ReplySpoken(response_id, characters), self.now)
        self.collect()

    def call(self, response_id: str, index: int, call_id: str, name: str, arguments: str) -> None:
        self.session.done(ReplyCall(response_id, index, call_id, name, arguments), self.now)
        self.collect()

    def end(self, response_id: str, finish_reason: str = "stop") -> None:
        self.session.done(ReplyEnded(response_id, finish_reason), self.now)
        self.collect()

    def fail(self, response_id: str) -> None:
        self.session.done(ReplyFailed(response_id, "ModelUnavailable", "The engine is away."), self.now)
        self.collect()

    # ── Whole scenes ─────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, words: str = "What time is it?") -> str:
        """A spoken turn up to the model's turn to answer; returns the response's id."""
        self.say(640)
        self.hush(960)
        self.recognize(words)
        return self.take(Respond).response_id

    def ask_in_writing(self, words: str = "What time is it?") -> str:
        """A typed turn up to the model's turn to answer; returns the response's id."""
        content = [{"type": "input_text", "text": words}]
        self.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content})
        self.tell("response.create")
        return self.take(Respond).response_id

    def answer(self, response_id: str, text: str = "It is noon. ", ms: float = 2000) -> None:
        """A whole answer of one sentence, synthesized at once; it is still being sent afterwards."""
        self.write(response_id, text)
        if ms:
            self.speak(response_id, ms, len(text))
        self.end(response_id)

    # ── What the client sees ─────────────────────────────────────────────────────────────────────────────────────────

    def assert_event(self, kind: str, **expected: Any) -> Wire:
        """The next unread event of this type has these fields; events before it count as read."""
        for position in range(self._unread, len(self.events)):
            event = self.events[position]
            if event["type"] == kind:
                self._unread = position + 1
                for name, value in expected.items():
                    assert event.get(name) == value, f"{kind}.{name} is {event.get(name)!r}, not {value!r}"
                return event
        raise AssertionError(f"no {kind} among {[event['type'] for event in self.events[self._unread :]]}")

    def assert_error(self, code: str, **expected: Any) -> Wire:
        """The next unread error has this code and these fields, and is about the event that was sent last."""
        error: Wire = self.assert_event("error")["error"]
        for name, value in {"code": code, "event_id": "mine", **expected}.items():
            assert error.get(name) == value, f"error.{name} is {error.get(name)!r}, not {value!r}"
        assert error["message"]
        return error

    def assert_types(self, *kinds: str) -> None:
        """The unread events are exactly of these types, in this order."""
        assert self.unread_types() == list(kinds)

    def assert_no_event(self, *kinds: str) -> None:
        unread = [event["type"] for event in self.events[self._unread :]]
        assert not [kind for kind in unread if not kinds or kind in kinds]

    def unread_types(self) -> list[str]:
        """Types of the unread events, which are read now."""
        unread = [event["type"] for event in self.events[self._unread :]]
        self._unread = len(self.events)
        return unread

    def skip(self) -> None:
        """Count everything so far as read."""
        self._unread = len(self.events)

    def of(self, kind: str) -> list[Wire]:
        return [event for event in self.events if event["type"] == kind]

    def audio_ms(self, response_id: str) -> float:
        pieces = [event["delta"] for event in self.of("response.audio.delta") if event["response_id"] == response_id]
        return self.session.config.output_format.duration_ms(sum(len(base64.b64decode(piece)) for piece in pieces))

    def item(self, item_id: str) -> Wire:
        """The item as the client would retrieve it."""
        return self.session.conversation.find(item_id).to_wire()

    def collect(self) -> None:
        """Fetch what the session has for its owner; done after every step here."""
        for event in self.session.events_to_send():
            if isinstance(event, PlayoutCut):
                self.cuts.append(len(self.events))
                continue
            assert event.event_id
            self.events.append(json.loads(json.dumps(event.to_wire(), allow_nan=False)))
        for work in self.session.work_to_start():
            if isinstance(work, Recognize) and work.is_early and not self.reads_early:
                self.session.done(RecognitionFailed(work, "Throttling.Concurrency", "Recognition is busy."), self.now)
            else:
                self.work.append(work)
        self.records.extend(self.session.records())
