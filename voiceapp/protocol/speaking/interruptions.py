"""Barge-in: decides whether sound during a reply interrupts it. Sound that may be the reply's own echo must prove to be
words of the caller.

`python -m tests.bench.interrupting` measures the thresholds.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from voiceapp.protocol.audio import FRAME_MS
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.hearing.turns import MIN_SPEECH_MS, MIN_WORD_CONFIDENCE
from voiceapp.protocol.hearing.utterance import SURE_FRAMES, Utterance
from voiceapp.protocol.speaking.ducking import Ducking
from voiceapp.protocol.speaking.echoed_words import are_echoed, said_between
from voiceapp.protocol.speaking.responding import Responder
from voiceapp.protocol.speaking.response import Response
from voiceapp.protocol.states import EchoRisk, SpeechVerdict
from voiceapp.protocol.wire.events import ServerEvent

ECHO_TAIL_S = 1.0
"""An echo may be heard so long after the end of a reply."""
LONG_SPEECH_MS = 900
"""Longer than any "mm-hm"."""
UNBROKEN_SPEECH_MS = 640
"""Speech without a pause that is longer than any word that shows attention."""
WORD_MS = 400
"""Least length of a whole word."""
NEARLY_OVER_S = 0.5
"""A short "yes" at the end of a reply is an answer to it."""
EARLY_CONFIDENCE = 0.6
"""Least confidence of words in less than `MIN_SPEECH_MS` of speech: "mm-hm" begins as "Yeah, mate" with 0.55."""
CLEAR_CONFIDENCE = 0.8
"""A single word that is read so well is believed at once, and behind a word that shows attention only then: of "uh-huh"
remains "Other" with 0.76."""
QUESTION_CONFIDENCE = 0.5
OWN_CONFIDENCE = 0.6
"""Least confidence of the caller's words; recognition has less, mostly, in an echo that it takes for other words than
the reply's."""
EARLIER_MS = 2000.0
"""Reply before a sound that may echo in it: the longest delay of an echo, the time until the sound was noticed, and a
margin, for the position of a word in a sentence is not known exactly."""
MARGIN_MS = 1000.0

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class ListenerWords:
    """The words of a language by which interruptions are told from attention."""

    commands: frozenset[str]
    """Words that interrupt as soon as they are heard."""
    openings: frozenset[str]
    """First words of requests, which count even when recognition has little confidence."""
    nods: frozenset[str]
    """Words by which listeners show attention."""
    particles: frozenset[str]
    """Words that ask for nothing by themselves; "hmm" is often understood as one of them."""

    def says_nothing(self, word: str) -> bool:
        return len(word) == 1 or word in self.nods or word in self.particles


def _by_language() -> dict[str, ListenerWords]:
    data = tomllib.loads(Path(__file__).with_name("listener_words.toml").read_text(encoding="utf-8"))
    return {
        code: ListenerWords(**{name: frozenset(words.split()) for name, words in lists.items()})
        for code, lists in data.items()
    }


LISTENER_WORDS = _by_language()
"""Words by ISO 639-1 code. Speech in another language is judged by its length alone."""
NO_WORDS = ListenerWords(frozenset(), frozenset(), frozenset(), frozenset())


class Interruptions:
    """Decides about sound during one session's replies."""

    def __init__(
        self,
        config: SessionConfig,
        responder: Responder,
        *,
        send: Callable[[ServerEvent], None],
    ) -> None:
        self.config = config
        self._responder = responder
        self.ducking = Ducking(responder, send)

    def is_doubtful(self, echo: EchoRisk, now: float) -> bool:
        """Speech that begins now does not interrupt yet: it is waited for what it is."""
        if echo is not EchoRisk.NONE:
            return bool(self._heard(now, ECHO_TAIL_S))
        return self._may_interrupt and self.config.interruptions == "duck" and bool(self._heard(now))

    def begin(self, utterance: Utterance, now: float) -> None:
        """The caller may have begun to speak during the reply."""
        if self._may_interrupt and self.config.interruptions == "duck":
            self.ducking.begin(utterance, now)

    def speech_started(self, now: float) -> None:
        """The caller speaks: the reply falls silent, if it may be interrupted."""
        if not self._may_interrupt:
            self.ducking.restore(now)
            return
        self.ducking.forget()
        if self._responder.live:
            self._responder.cancel("turn_detected", now)
        elif self._responder.response:  # all of it was handed out already, and the caller speaks into the last words
            self._responder.cut_playout()

    def judge_sound(self, utterance: Utterance) -> SpeechVerdict:
        """Decide without words."""
        if utterance.sure_frames >= SURE_FRAMES and self.config.interruptions != "duck":
            return SpeechVerdict.INTERRUPTS
        is_unbroken = utterance.unbroken_ms >= UNBROKEN_SPEECH_MS and not utterance.shows_attention
        is_long = is_unbroken or utterance.speech_ms >= LONG_SPEECH_MS
        if is_long and utterance.sure_frames * FRAME_MS * 2 > utterance.speech_ms:
            return SpeechVerdict.INTERRUPTS
        return SpeechVerdict.OPEN

    def judge(self, utterance: Utterance, now: float, *, is_complete: bool) -> SpeechVerdict:
        """Decide by the words so far, or up to a pause if `is_complete`."""
        spoken = _WORD.findall(utterance.reading.casefold())
        if not spoken or self._may_be_echo(spoken, utterance, now, is_complete=is_complete):
            return SpeechVerdict.TAKEN_BACK if is_complete else SpeechVerdict.OPEN
        words = self._words
        if words is NO_WORDS or (len(spoken) <= MOST_WORDS and all(map(words.says_nothing, spoken))):
            utterance.shows_attention |= words is not NO_WORDS and utterance.confidence >= EARLY_CONFIDENCE
            if not is_complete:
                return SpeechVerdict.OPEN
            return SpeechVerdict.INTERRUPTS if self._left_s(now) < NEARLY_OVER_S else SpeechVerdict.TAKEN_BACK
        if _asks(words, spoken, utterance, is_complete=is_complete):
            return SpeechVerdict.INTERRUPTS
        return SpeechVerdict.TAKEN_BACK if is_complete else SpeechVerdict.OPEN

    def judge_for_buffer(self, utterance: Utterance, now: float) -> SpeechVerdict:
        """Voice detection is switched off: only what was read and is an echo does not belong to the buffer."""
        spoken = _WORD.findall(utterance.reading.casefold())
        if not utterance.is_sure and not spoken:
            return SpeechVerdict.OPEN
        is_echo = self._may_be_echo(spoken, utterance, now, is_complete=True)
        return SpeechVerdict.TAKEN_BACK if is_echo else SpeechVerdict.INTERRUPTS

    @property
    def _words(self) -> ListenerWords:
        language = self.config.transcription_language or "en"
        return LISTENER_WORDS.get(language.lower().split("-")[0], NO_WORDS)

    @property
    def _may_interrupt(self) -> bool:
        settings = self.config.turn_detection
        return settings is not None and settings.interrupt_response

    def _left_s(self, now: float) -> float:
        """Seconds of the reply that are still to be heard, as far as is known."""
        response = self._responder.response
        if response is None:
            return 0.0
        if response.is_live and not response.playout.is_complete:
            return math.inf
        return response.playout.pushed_ms / 1000 - response.playout.heard_ms(now) / 1000

    def _heard(self, now: float, tail_s: float = 0.0) -> list[Response]:
        """The replies of which something may be heard, up to so long after their end."""
        return [
            response
            for response in (self._responder.before, self._responder.response)
            if response is not None
            and response.playout.sent_ms
            and (response.is_live or now < response.playout.heard_at + tail_s)
        ]

    def _may_be_echo(self, spoken: list[str], utterance: Utterance, now: float, *, is_complete: bool) -> bool:
        """Words that came with an echo: too few of them, the reply's own, or read with too little confidence."""
        if utterance.is_sure:
            return False
        said = self._said_during(utterance, now)
        if utterance.confidence < (OWN_CONFIDENCE if is_complete else MIN_WORD_CONFIDENCE):
            return True
        if spoken[0] in self._words.commands and not _says(said, spoken[0]):
            return False
        is_short = utterance.speech_ms < WORD_MS
        if is_short and (not is_complete or utterance.echo is EchoRisk.LIKELY):
            return True
        is_likely = utterance.echo is EchoRisk.LIKELY or not is_complete  # while it goes on, an echo may yet be found
        return are_echoed(utterance.reading, said, is_likely=is_likely)

    def _said_during(self, utterance: Utterance, now: float) -> str:
        """The text of the replies that may have echoed in it."""
        return " ".join(
            response.aside
            + " "
            + said_between(
                response.message,
                response.playout.heard_ms(utterance.began_at) - EARLIER_MS,
                response.playout.heard_ms(now) + MARGIN_MS,
            )
            for response in self._heard(utterance.began_at, ECHO_TAIL_S)
            if response.message is not None
        )


def _asks(words: ListenerWords, spoken: list[str], utterance: Utterance, *, is_complete: bool) -> bool:
    """Words that say more than "I listen" ask for something, as far as they are read with confidence."""
    confidence = utterance.confidence
    is_early = not is_complete and utterance.speech_ms < MIN_SPEECH_MS
    if spoken[0] in words.commands or len(spoken) > 1:
        return not is_early or confidence >= EARLY_CONFIDENCE
    if utterance.shows_attention or is_early:
        least = CLEAR_CONFIDENCE
    elif is_complete or utterance.speech_ms >= WORD_MS:
        least = MIN_WORD_CONFIDENCE
    else:
        least = CLEAR_CONFIDENCE
    is_opening = spoken[0] in words.openings and not is_complete and not utterance.shows_attention
    return confidence >= (QUESTION_CONFIDENCE if is_opening else least)


def _says(text: str, command: str) -> bool:
    """A command may have been understood of one of the text's words: of "stops", "stop", but not "no" of "now"."""
    return bool(re.search(rf"\b{command}" if len(command) > 2 else rf"\b{command}\b", text.casefold()))
