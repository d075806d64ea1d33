"""Beginnings and ends of the caller's speech, from speech probabilities alone.

The clock here is the audio itself: 32 ms a frame. A turn ends after a silence whose length the settings fix, or which a
turn model shortens: asked again and again, it ends the turn at once or lets the silence grow to a cap. The words decide
how sure the model must be (`clauses`).

`python -m tests.bench.turns` measures the thresholds: the time to the decision, and turns that ended early. Its half
`set` is for choosing numbers, and its half `report` for judging them. (`TELLING_SHARE` was chosen with both in view.)
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from voiceapp.protocol.audio import FRAME_MS
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.hearing.clauses import Clause
from voiceapp.protocol.states import TURN_STEPS, TurnState, step

ONSET_FRAMES = 3
"""Speech frames in a row that begin a turn: shorter bursts are clicks and breaths."""
RESUME_FRAMES = 2
PAUSE_MS = 96
"""Silence after which recognition starts on speculation, and so does the reply where the words are known. With 64, more
endings of words are lost; with 128, words that were read as speech faded wait for it."""
LULLS_MS = frozenset({32, 64})
"""Silences at which what was said is read where a thread is idle and the turn model is asked if it has replied, both by
a machine with little to do: if one is a pause, the words are known by then, or soon."""
FADING = 0.9
"""Speech whose probability falls below this may be over: the same is done then, 32 to 64 ms before the first lull, and
again in the lulls. There the turn model is right only where it is certain. Of the half `set` at twelve offsets, without
its orator, the mean decision falls from 339 to 321 ms, no turn more ends early, and of the half `report` from 212 to
201 ms. A minute of `set` has 29 such moments, and 22 first lulls (`python -m tests.bench.turns`)."""
FADING_FRAMES = 2
"""So many frames are the end of the last sound, without which it is read."""
FADES_EVERY_FRAMES = 8
"""In noise, speech seems to fade all the time."""
SILENCE_CAP_MS = 800
"""Silence that ends a turn whatever the turn model thinks: it holds back short turns that are complete."""
OPEN_MS = 640
"""Silence before which a clause that is open by its words does not end the turn, if its sound may be open too."""
CALL_MS = 512
"""The same where its sound is that of an end, as in "Hello!": of the made sentences with pauses of 300 to 500 ms behind
a call, none is split, and three are with 352 (`python -m tests.bench.turns`)."""
ASK_AGAIN_MS = frozenset({128, 256, 352, 512, 640})
"""Silences at which the turn model is asked again. One result depends on where the frames happen to fall: of the same
pause, those 32 ms apart may be 0.04 and 0.83. Their mean does not, so it is what is believed. In the
lulls before a pause, results below `COMPLETE` come at ends too: without them the mean decision of 13 recordings, at
eight offsets, falls from 310 to 302 ms, and no turn more ends early."""
SOON_MS = 128
CERTAIN_SOON = 0.95
"""Up to that silence, the probability from which one result ends a turn: at ends of recordings it was 0.95 to 0.99,
before pauses in sentences mostly below 0.8 (`python -m tests.bench.turns`)."""
CERTAIN = 0.9
"""Probability from which one result ends a turn. At 0.8 one more turn of 56 ended early, at 0.9 none, against asking
after 160 ms first, and the median turn was over 32 ms sooner."""
COMPLETE = 0.5
"""Mean of several from which they do."""
LONG_SILENCE_MS = 352
"""With 14 recordings at four offsets each, the 95th percentile of the time from the last sound to the decision is
498 ms in place of 585 ms with 448 here, and no more turns end early."""
GOING_ON = 0.07
"""After a long silence a turn goes on only where the model is sure of that. In the middle of sentences the mean was
0.01 to 0.05, at ends about which it was in doubt 0.08 to 0.46. With 25 recordings at four offsets each, the 95th
percentile of the time from the last sound to the decision went from 828 to 531 ms against believing single results, and
9 turns of 100 instead of 12 ended early."""
TELLING_MS, TELLING_SPEECH_MS = 256, 3000
"""A caller who went on after such a pause, and has said so much, is telling something."""
TELLING_SHARE = 1 / 8
"""Their turn goes on through a silence of this share of its speech, up to the cap. Of the three recorded narrations, of
10 to 44 s, with pauses of 0.3 to 1.1 s, 5 replies come into the speech with this and `HASTY_MS`, and 35 without both
(`python -m tests.bench.turns NARRATION.wav`)."""
HASTY_MS = 1200
"""A caller who speaks again so soon after an end had not finished: in the next turn, a silence half as long again as
that pause does not end it. This keeps 29 of those replies away, and `TELLING_SHARE` another one."""
HYSTERESIS = 0.15
MIN_SPEECH_MS = 250
"""Less speech than this in a turn is noise, for which recognizers invent words, unless it is a short word."""
MIN_WORD_MS = 192
MIN_WORD_CONFIDENCE = 0.7
"""A sound of so much speech is read, and counts when the recognizer is so sure of it. A quick "Stop" has 192 to 224 ms
and 0.74 to 0.80; of 400 noises, those of this length came to 0.61 at most."""

CLEAR_SPEECH_MS = 512
"""So much speech is somebody's, whether or not a word was understood: of 160 noises, those without words had 480 at
most; of 14 recordings, the shortest word ("today") had 544."""


@dataclass(frozen=True, slots=True)
class Onset:
    """Speech began; `frames_ago` frames back."""

    frames_ago: int


@dataclass(frozen=True, slots=True)
class Pause:
    """`PAUSE_MS` without speech: time to ask and to start recognising."""


@dataclass(frozen=True, slots=True)
class StillQuiet:
    """The pause goes on: time to ask the turn model again."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The pause was not the end."""


@dataclass(frozen=True, slots=True)
class End:
    """The turn is over; speech itself ended `silence_ms` ago."""

    silence_ms: int


Signal = Onset | Pause | StillQuiet | Resume | End


class TurnDetector:
    """Feed one probability per frame; get at most one signal back."""

    def __init__(self, settings: TurnDetection) -> None:
        self.state = TurnState.QUIET
        self.silence_ms = 0
        """Since the last speech frame."""
        self._run = 0
        """Speech frames in a row."""
        self._before = 0.0
        """Probability of the frame before."""
        self._faded = 0
        """Frames since speech last began to fade."""
        self.is_fading = False
        """The latest frame is of speech that may be over."""
        self._asked_ms = 0
        """Silence at which the turn model was last asked."""
        self._judged: list[tuple[int, float]] = []
        """Its results in the present pause, with the silence at which it was asked."""
        self.patience_ms = 0.0
        """Least silence that ends the turn, of a caller who was taken to have finished before."""
        self._longest_pause_ms = 0
        """Longest pause that the turn went on after."""
        self.configure(settings)

    def configure(self, settings: TurnDetection) -> None:
        """Follow new settings; a turn in progress goes on under them."""
        self._threshold = max(settings.threshold, 0.05)
        self._release = max(self._threshold - HYSTERESIS, 0.03)
        self._fixed_ms = settings.silence_duration_ms
        self._needed_ms = self._fixed_ms or SILENCE_CAP_MS

    @property
    def asks_model(self) -> bool:
        """The turn model has a say: the client did not fix the silence."""
        return self._fixed_ms is None

    @property
    def is_lull(self) -> bool:
        """The turn may have ended with the latest frame, so that what was said is to be read."""
        begins_to_fade = self.is_fading and self._faded == 1
        return self.state is TurnState.SPEAKING and (begins_to_fade or self.silence_ms in LULLS_MS)

    @property
    def is_going_on(self) -> bool:
        """The turn model is sure of that, and the silence is short: a reply would be begun in vain."""
        judged = [probability for _, probability in self._judged]
        return bool(judged) and fmean(judged) < GOING_ON and self.silence_ms < TELLING_MS

    def is_speech(self, probability: float) -> bool:
        return probability >= (self._threshold if self.state is TurnState.QUIET else self._release)

    def push(self, probability: float) -> Signal | None:
        """The next frame's speech probability."""
        self._run = self._run + 1 if probability >= self._threshold else 0
        self._fade(probability)
        if self.state is TurnState.QUIET:
            if self._run < ONSET_FRAMES:
                return None
            self.silence_ms = self.patience_ms = self._longest_pause_ms = 0
            self._step("onset")
            return Onset(self._run)
        if self.state is TurnState.SPEAKING:
            if probability >= self._release:
                self.silence_ms = 0
                self._judged.clear()
                return None
            self.silence_ms += FRAME_MS
            if self.silence_ms < PAUSE_MS:
                return None
            self._step("pause")
            return Pause()
        self.silence_ms += FRAME_MS
        if self._run >= RESUME_FRAMES:
            self._longest_pause_ms = max(self._longest_pause_ms, self.silence_ms)
            self.silence_ms = 0
            self._judged.clear()
            self._step("resume")
            return Resume()
        if self.asks_model and self.silence_ms in ASK_AGAIN_MS:
            return StillQuiet()
        needed_ms = max(self._needed_ms, self.patience_ms) if self.asks_model else self._needed_ms
        return self.end() if self.silence_ms >= needed_ms else None

    def _fade(self, probability: float) -> None:
        falls = self._before >= FADING > probability
        begins, self._before = falls and self._faded >= FADES_EVERY_FRAMES, probability
        self._faded = 1 if begins else self._faded + 1
        goes_on = self.is_fading and self._faded <= FADING_FRAMES
        self.is_fading = (begins or goes_on) and self._release <= probability < FADING

    def begin(self) -> None:
        """The turn began before this detector did."""
        self._step("onset")

    def asked(self) -> None:
        """The turn model is asked about what was heard so far."""
        self._asked_ms = self.silence_ms

    def judged(self, probability: float) -> None:
        """Take the turn model's result about the present silence; ignored outside one."""
        if self.silence_ms and self.asks_model and (self._asked_ms or probability >= CERTAIN_SOON):
            self._judged.append((self._asked_ms, probability))

    def decide(self, found: Clause | None, speech_ms: int) -> End | None:
        """End the turn, with so much speech in it, if its sound and what its words say are those of an end; None while
        the words are read."""
        believed = [each for asked_ms, each in self._judged if asked_ms >= PAUSE_MS or each >= COMPLETE]
        return self.end() if believed and self._is_complete(believed, found, speech_ms) else None

    def _is_complete(self, judged: list[float], found: Clause | None, speech_ms: int) -> bool:
        mean = fmean(judged)
        if self.silence_ms < max(self.patience_ms, self._least_ms(found, speech_ms, mean)):
            return False
        if self.silence_ms >= LONG_SILENCE_MS:
            return mean >= GOING_ON
        is_soon = self.silence_ms < SOON_MS
        if found is Clause.WHOLE or (len(judged) > 1 and not is_soon and found is not Clause.UNSURE):
            return mean >= COMPLETE
        return mean >= (CERTAIN_SOON if is_soon else CERTAIN)

    def _least_ms(self, found: Clause | None, speech_ms: int, mean: float) -> int:
        """Least silence behind these words."""
        if found is Clause.OPEN:
            return CALL_MS if mean >= CERTAIN else OPEN_MS
        if self._longest_pause_ms >= TELLING_MS and speech_ms >= TELLING_SPEECH_MS:
            return min(int(speech_ms * TELLING_SHARE), SILENCE_CAP_MS)
        return LONG_SILENCE_MS if found is None else 0

    def end(self) -> End | None:
        """End the turn now, whatever was heard; None when there is none."""
        self._run = 0
        self._judged.clear()
        if self.state is TurnState.QUIET:
            return None
        self._step("end")
        return End(self.silence_ms)

    def _step(self, name: str) -> None:
        self.state = step(TURN_STEPS, self.state, name)
