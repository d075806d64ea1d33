"""Utterances, each said by one caller in one go: its audio, its words so far, and when it was spoken."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from voiceapp.protocol.audio import FRAME_MS, Pcm
from voiceapp.protocol.hearing.captions import Captions
from voiceapp.protocol.hearing.turns import CLEAR_SPEECH_MS, MIN_SPEECH_MS, MIN_WORD_CONFIDENCE, MIN_WORD_MS
from voiceapp.protocol.states import READING_STEPS, SPEECH_STEPS, EchoRisk, ReadingState, SpeechState, step

MARGIN_FRAMES = 6
"""Frames that recognition hears around the speech: 192 ms, for voice detection does not hear a voiceless beginning: of
"Spell necessary" 64 ms leave "F. S. S. S.". On 84 variants of recorded speech (shifted, quieter, in noise) and 240
short synthetic requests, 4.2 and 53 % of the words came out wrong with 64 ms, 2.9 and 46 % with it and a second one."""
MAX_UTTERANCE_MS = 120_000
"""Longer speech is committed and a new utterance begins; bounds memory at 4 MB a caller."""
LANGUAGE_MS = 1000
"""So much speech shows its language: "Hallo" and "Okay" have half of that."""
PARTIAL_EVERY_MS = 500
DOUBTFUL_EVERY_MS = 160
SURE_EVERY_MS = 64
"""The same where no echo can be in it. A reading takes 30 ms. Of 120 requests into a reply, half were known after
0.31 s, and after 0.42 s where the first reading waited for 250 ms of speech and the next ones for 160 ms."""
SURE_FRAMES = 3
"""Frames of speech that cannot be an echo: then it is the caller who speaks."""
PARTIAL_SHARE = 0.1
"""A partial recognition re-reads the whole utterance, so its interval grows with the length."""


class Utterance:
    """Audio of one turn, and the recognition of it."""

    def __init__(self, item_id: str, started_ms: int) -> None:
        self.item_id = item_id
        self.started_ms = started_ms
        """Position of the first frame in the session's audio."""
        self.ended_ms: int | None = None
        """Position of its end, once voice detection has found that."""
        self.length_ms = 0
        self.speech_ms = 0
        """Speech in it."""
        self.unbroken_ms = 0
        """Speech since the latest pause."""
        self.began_at = 0.0
        """When its first frames were taken (the session's clock)."""
        self.last_speech_at: float | None = None
        """When its last speech frame arrived (the session's clock)."""
        self.ended_at: float | None = None
        """When the turn was found to be over."""
        self.recognized_at: float | None = None
        """When the final words were known after that."""
        self.version = 0
        """Counts up when speech goes on, so that a recognition of less is not taken for the whole."""
        self.state = SpeechState.BUFFERED
        self.readings = ReadingState.NONE
        self.judging_ms: int | None = None
        """Speech that the turn model was asked about, until its result is there."""
        self.echo = EchoRisk.NONE
        """The greatest risk that part of it is the echo of a reply."""
        self.sure_frames = 0
        """Frames of speech that are no echo."""
        self.shows_attention = False
        """A reading of it said "mm-hm" or the like."""
        self.reading = ""
        """The words of its latest reading."""
        self.confidence = 0.0
        """Confidence of that reading."""
        self.language = ""
        """The language that was detected in enough of it; else empty."""
        self.reading_language = ""
        """The language of its latest reading; empty where that is not known."""
        self._words = ""
        self._partial_at_ms = PARTIAL_EVERY_MS
        self._shown = ("", False)
        """The words that were shown last, and whether the reading before agreed with them."""
        self._captions = Captions()
        self._frames: list[Pcm] = []
        self._speech = slice(0, 0)
        """From the first to the last speech frame."""

    def note_language(self, language: str, *, is_detected: bool) -> None:
        """Take the language of a reading."""
        self.reading_language = language
        self.language = language if is_detected and self.speech_ms >= LANGUAGE_MS else ""

    def step(self, name: str) -> None:
        self.state = step(SPEECH_STEPS, self.state, name)

    def read(self, name: str) -> ReadingState:
        """Take a step of `READING_STEPS`; return the state after it."""
        self.readings = step(READING_STEPS, self.readings, name)
        return self.readings

    @property
    def is_doubtful(self) -> bool:
        """It may be no interruption; nothing is said of it until that is known."""
        return self.state in (SpeechState.DOUBTFUL, SpeechState.AWAITING)

    @property
    def is_full(self) -> bool:
        return self.length_ms >= MAX_UTTERANCE_MS

    @property
    def is_sure(self) -> bool:
        """It is the caller who speaks."""
        return self.echo is EchoRisk.NONE or self.sure_frames >= SURE_FRAMES

    @property
    def may_be_speech(self) -> bool:
        """Enough speech to be worth recognising."""
        return self.speech_ms >= MIN_WORD_MS

    @property
    def is_speech(self) -> bool:
        """Enough speech for a turn, or a short word that the recognizer is sure of."""
        return self.speech_ms >= MIN_SPEECH_MS or bool(self.words)

    @property
    def words(self) -> str | None:
        """The words of all of it, once known; empty when nothing was understood."""
        return self._words if self.readings is ReadingState.KNOWN else None

    @property
    def is_clear_speech(self) -> bool:
        """Somebody spoke, whether or not a word was understood."""
        return self.speech_ms >= CLEAR_SPEECH_MS

    def keep_stable_words(self) -> bool:
        """Take the words that two successive readings agreed on, for want of final ones; False when there are none."""
        words, is_stable = self._shown
        if is_stable:
            self._words = words
            self.read("keep")
        return is_stable

    def reopen(self) -> None:
        """More is said after all: its words stay, should a later reading find none."""
        if self.words:
            self._shown = self.words, True

    def copy(self) -> Utterance:
        """Return the turn as it is now, for `after`."""
        other = copy(self)
        other._frames = self._frames.copy()
        return other

    def after(self, later: Utterance) -> Utterance:
        """Return this copy of a turn in progress, with nothing of what was said `later`; its readings count no more."""
        self.version = later.version + 1
        self.step("announce")
        if self.words is None:
            self.read("resume")
        return self

    def keep_words(self, words: str, confidence: float = 1.0) -> None:
        """Take the words of all of it, as far as a sound of this length is believed to have some."""
        is_believed = self.speech_ms >= MIN_SPEECH_MS or confidence >= MIN_WORD_CONFIDENCE
        self._words = words if is_believed else ""
        self.read("keep")
        self.reading, self.confidence = self._words, confidence

    @property
    def origin(self) -> float | None:
        """The moment latencies count from: the last speech frame, else the end of the turn."""
        return self.last_speech_at if self.last_speech_at is not None else self.ended_at

    def go_on(self) -> None:
        """There is more speech than its readings know: they count no more."""
        self.version += 1
        self.unbroken_ms = 0
        self.ended_ms = self.judging_ms = None
        self.read("resume")
        if self.state is SpeechState.AWAITING:
            self.step("resume")

    def append(
        self, frame: Pcm, *, is_speech: bool, now: float, echo: EchoRisk = EchoRisk.NONE, fades: bool = False
    ) -> None:
        """Take a frame; one that `fades` is the end of a sound, and of no consequence for the reading under way."""
        if not self.length_ms:
            self.began_at = now
        self._frames.append(frame)
        self.length_ms += FRAME_MS
        if is_speech:
            first = self._speech.start if self.speech_ms else len(self._frames) - 1
            self._speech = slice(first, len(self._frames))
            self.speech_ms += FRAME_MS
            self.unbroken_ms += FRAME_MS
            self.last_speech_at = now
            self.sure_frames += echo is EchoRisk.NONE
            if not fades:
                self.read("speech")
            elif self.judging_ms == self.speech_ms - FRAME_MS:
                self.judging_ms = self.speech_ms
        self.echo = max(self.echo, echo)

    def audio(self) -> NDArray[np.float32]:
        """Everything so far as float32 in [-1, 1) at 16 kHz: the turn model listens to the silence too."""
        return _floats(self._frames)

    def speech(self) -> NDArray[np.float32]:
        """The same without what lies before and behind the speech: a recognizer reads that better."""
        return _floats(self._frames[max(0, self._speech.start - MARGIN_FRAMES) : self._speech.stop + MARGIN_FRAMES])

    def drop_audio(self) -> None:
        """The words are known; the samples are not needed any more."""
        self._frames.clear()

    def doubt(self, echo: EchoRisk, *, sure_frames: int) -> None:
        """Its words are wanted soon, to know what it is; so many of its frames are no echo."""
        self.step("doubt")
        self.sure_frames = sure_frames
        self.echo = echo
        self._partial_at_ms = 0

    def wants_partial(self, *, is_lull: bool = False) -> bool:
        """Time to show the words so far; true once per interval, and in a lull."""
        is_quick = self.is_doubtful and self.is_sure
        is_due = is_lull or self.length_ms >= self._partial_at_ms
        is_enough = self.may_be_speech if is_quick else self.is_speech
        if not is_due or not is_enough or self.readings is not ReadingState.NONE:
            return False
        least_ms = SURE_EVERY_MS if is_quick else DOUBTFUL_EVERY_MS if self.is_doubtful else PARTIAL_EVERY_MS
        self._partial_at_ms = self.length_ms + max(least_ms, int(self.length_ms * PARTIAL_SHARE))
        return True

    def partial(self, words: str, now: float) -> tuple[str, str]:
        """The words so far to be shown, as (stable, may still change): two texts that are read one behind the other."""
        self._shown = (words, words.split() == self._shown[0].split()[: len(words.split())])
        stable, rest = self._captions.show(words.split(), now)
        return " ".join(stable), " ".join(["", *rest] if stable and rest else rest)


def _floats(frames: list[Pcm]) -> NDArray[np.float32]:
    return np.concatenate([np.zeros(0, dtype=np.int16), *frames]).astype(np.float32) / np.float32(32768)
