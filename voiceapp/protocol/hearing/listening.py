"""The user's side of a session: from audio frames to turns. `turn_words` finds the words of turns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from voiceapp.errors import RemoteProtocolError
from voiceapp.protocol.audio import FRAME_MS, Pcm
from voiceapp.protocol.configuration import SessionConfig, TurnDetection
from voiceapp.protocol.hearing.clauses import clause
from voiceapp.protocol.hearing.turn_words import Hooks, TurnWords
from voiceapp.protocol.hearing.turns import HASTY_MS, ONSET_FRAMES, End, Onset, Pause, Resume, Signal, TurnDetector
from voiceapp.protocol.hearing.utterance import MAX_UTTERANCE_MS, Utterance
from voiceapp.protocol.speaking.interruptions import Interruptions
from voiceapp.protocol.speaking.responding import Responder
from voiceapp.protocol.states import EchoRisk, ReadingState, SpeechState, SpeechVerdict, TurnState
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import Abandon, JudgeTurn, RecognitionFailed, Recognized, TurnJudged

CONTINUES_MS = 700
"""Words that follow a turn so soon continue it, unless something of the reply was heard before."""
STALL_S = 2.0
"""A caller who was speaking and whose audio stopped coming has ended the turn."""


class Listener:
    """Frames in; turn events, recognition work and committed utterances out."""

    def __init__(self, config: SessionConfig, responder: Responder, hooks: Hooks) -> None:
        self.quiet_since = -math.inf
        """When the caller last fell silent."""
        self._hooks = hooks
        self._responder = responder
        self.interruptions = Interruptions(config, responder, send=hooks.send)
        self._settings = config.turn_detection
        self._words = TurnWords(config, replace(hooks, words_expected=self._expect))
        self._detector = TurnDetector(self._settings) if self._settings else None
        self.heard_ms = 0
        """Audio received since the start."""
        self._audio_at = 0.0
        self._recent: list[Pcm] = []
        """The last frames before speech, for the prefix padding."""
        self._open: Utterance | None = None
        """Speech in progress; in manual mode, what was appended since the last commit."""
        self._last: Utterance | None = None
        """The turn before, which may yet go on."""
        self._whole: Utterance | None = None
        """The turn in progress as it was when it seemed to be over."""
        self._ended_at = -math.inf
        """When the speech of the turn before ended."""
        self._pause_ms = math.inf
        """From there to the speech in progress."""
        self._echo = EchoRisk.NONE
        """Speech probability of the latest frame."""
        self._sure_run = 0
        """Frames in a row that are no echo."""

    @property
    def is_speech_open(self) -> bool:
        """The caller is in the middle of a turn that voice detection follows."""
        return self._detector is not None and self._detector.state is not TurnState.QUIET

    @property
    def is_settled(self) -> bool:
        """The words of every committed turn are known, and of what may become one."""
        return self._words.is_settled and not (self._open and self._open.state is SpeechState.AWAITING)

    def holds(self, item_id: str) -> bool:
        """The id belongs to a turn whose words are not known yet."""
        return self._find(item_id) is not None

    def stall_due(self) -> float | None:
        """When speech in progress counts as ended because no audio comes any more."""
        return self._audio_at + STALL_S if self.is_speech_open else None

    def note_language(self, config: SessionConfig) -> None:
        """Follow a language that was detected."""
        self._words.config = self.interruptions.config = config

    def configure(self, config: SessionConfig, now: float) -> None:
        """Follow a session update. Speech in progress goes on, in whichever mode comes: what was said is not lost."""
        self.note_language(config)
        self._settings = config.turn_detection
        if self._settings is None:
            self._listen_manually(now)
        elif self._detector is not None:
            self._detector.configure(self._settings)
        else:
            self._listen_for_turns(self._settings, now)

    def hear(self, frame: NDArray[np.float32], probability: float, now: float, echo: EchoRisk) -> None:
        """One frame of 512 samples and its speech probability."""
        self._echo = echo
        self._sure_run = self._sure_run + 1 if echo is EchoRisk.NONE else 0
        self.heard_ms += FRAME_MS
        self._audio_at = now
        pcm: Pcm = np.clip(frame * 32768, -32768, 32767).astype(np.int16)
        if self._detector is None:
            self._hear_manually(pcm, probability, now)
        else:
            self._hear_turns(self._detector, pcm, probability, now)
        if self._open is not None:
            is_lull = self._detector is not None and self._detector.is_lull and not self._open.is_doubtful
            self._words.ask_partial(self._open, is_lull=is_lull)
            if is_lull:
                self._ask(self._open)
        if (
            self._last
            and self._last.words is not None
            and self._silent_ms(self._last) > CONTINUES_MS + FRAME_MS * ONSET_FRAMES
        ):
            self._last.drop_audio()
            self._last = None

    def end_turn(self, now: float) -> None:
        """End speech in progress now, whatever voice detection thinks; nothing when there is none."""
        if self._detector is not None:
            self._end(self._detector.end(), now)

    def judged(self, judged: TurnJudged, now: float) -> None:
        """Take a result of the turn model; a late one is ignored."""
        utterance = self._open
        if self._detector and utterance and (utterance.item_id, utterance.version) == (judged.item_id, judged.version):
            is_of_now, utterance.judging_ms = utterance.judging_ms == utterance.speech_ms, None
            if is_of_now and judged.probability is not None:
                self._detector.judged(judged.probability)
                self._decide(utterance, now)

    def commit(self, now: float) -> None:
        """The client says that the turn is over.

        Raises:
            RemoteProtocolError: nothing was appended, or, with voice detection, nothing since the turn before.
        """
        if self._detector is not None and (self._open is not None or self._recent):
            self.end_turn(now)
        elif self._open is not None:
            self._commit(self._open, now)
        else:
            raise RemoteProtocolError(
                "The audio buffer is empty: append audio before the commit.", code="input_audio_buffer_commit_empty"
            )

    def clear(self, now: float) -> None:
        """Forget the audio since the last commit."""
        self._recent.clear()
        self._take_back(now)

    def finish(self, now: float) -> None:
        """No more audio will come: end the turn in progress; audio that the client did not commit is forgotten."""
        self.end_turn(now)
        if self.doubtful is None or not self.doubtful.echo:  # else its words, which are on their way, decide
            self._settle(SpeechVerdict.INTERRUPTS, now)
            self._drop_open(now)

    def close(self) -> None:
        """Whatever comes now is ignored."""
        self._words.close()
        if self._open is not None:
            self._hooks.start(Abandon(item_id=self._open.item_id))
        self._open = None
        self._detector = None

    def recognized(self, recognized: Recognized, now: float) -> None:
        """The words of a reading: shown when partial, kept when final, dropped when outdated."""
        self._words.recognized(utterance := self._find(recognized.work.item_id), recognized, now)
        if utterance and utterance is self.doubtful and recognized.work.version == utterance.version:
            is_complete = not recognized.work.is_partial
            self._settle(self.interruptions.judge(utterance, now, is_complete=is_complete), now)
        elif utterance and utterance is self._open:
            self._decide(utterance, now)

    def recognition_failed(self, failed: RecognitionFailed, now: float) -> None:
        """No words from this reading. A failed speculation is tried again when the turn ends."""
        utterance = self._find(failed.work.item_id)
        self._words.failed(utterance, failed, now)
        if utterance is self._last:  # its sound is gone
            self._last = None
        if utterance is not None and utterance is self.doubtful and not failed.work.is_partial:
            self._settle(SpeechVerdict.TAKEN_BACK if utterance.sure_frames == 0 else SpeechVerdict.INTERRUPTS, now)

    def _listen_manually(self, now: float) -> None:
        if doubtful := self.doubtful:
            self._settle(self.interruptions.judge_for_buffer(doubtful, now), now)
            if doubtful.is_doubtful:  # not read yet
                doubtful.step("leave_to_client")
            self.interruptions.ducking.restore(now)
        if self._detector is not None and self._open is not None:
            self._go_on(self._open)
        self._detector = self._last = None
        self._recent.clear()

    def _listen_for_turns(self, settings: TurnDetection, now: float) -> None:
        self._detector = TurnDetector(settings)
        if self._open is not None and self._open.is_speech:
            self._detector.begin()
            self._announce(self._open, now)
        else:
            self._drop_open(now)

    def _hear_turns(self, detector: TurnDetector, pcm: Pcm, probability: float, now: float) -> None:
        is_speech = detector.is_speech(probability)
        signal = detector.push(probability)
        if self._open is not None:
            self._open.append(pcm, is_speech=is_speech, now=now, echo=self._echo, fades=detector.is_fading)
        else:
            self._remember(pcm)
        if signal is not None:
            self._follow(signal, now)
        if self.doubtful is not None:
            self._settle(self.interruptions.judge_sound(self.doubtful), now)
        if self._open is not None and self._open.is_full:
            self.end_turn(now)

    def _hear_manually(self, pcm: Pcm, probability: float, now: float) -> None:
        if self._open is None:
            self._open = Utterance(self._hooks.new_id("item"), self.heard_ms - FRAME_MS)
        if not self._open.is_full:
            self._open.append(pcm, is_speech=probability >= 0.5, now=now)
        elif self._open.ended_ms is None:
            self._open.ended_ms = self.heard_ms - FRAME_MS
            seconds = MAX_UTTERANCE_MS // 1000
            self._hooks.send(
                ev.ErrorEvent(
                    code="input_audio_buffer_full",
                    message=f"The audio buffer is full ({seconds} s): commit or clear it; later audio is dropped.",
                )
            )

    def _remember(self, pcm: Pcm) -> None:
        self._recent.append(pcm)
        padding_ms = self._settings.prefix_padding_ms if self._settings else 0
        while len(self._recent) > padding_ms // FRAME_MS + ONSET_FRAMES:
            self._recent.pop(0)

    def _follow(self, signal: Signal, now: float) -> None:
        if isinstance(signal, Onset):
            self._begin(signal, now)
        elif isinstance(signal, End):
            self._end(signal, now)
        elif self._open is not None:
            if isinstance(signal, Resume):
                return self._go_on(self._open)
            if isinstance(signal, Pause):
                self._words.ask_early(self._open, now)
            elif self._open.words and not self._open.is_doubtful:
                self._expect(self._open)
            self._ask(self._open)

    def _expect(self, utterance: Utterance) -> None:
        """These are its words, if the present pause is its end."""
        if self._detector is None or not self._detector.is_going_on:
            self._hooks.words_expected(utterance)

    def _begin(self, onset: Onset, now: float) -> None:
        if self._open is not None:  # it ended, and its words are not known yet
            return self._go_on(self._open)
        started_ms = self.heard_ms - len(self._recent) * FRAME_MS
        reopened = self._reopened(onset, now)
        self._pause_ms = (now - self._ended_at) * 1000 - onset.frames_ago * FRAME_MS
        utterance = self._open = reopened or Utterance(self._hooks.new_id("item"), started_ms)
        speech_from = len(self._recent) - onset.frames_ago
        for position, frame in enumerate(self._recent):
            utterance.append(frame, is_speech=position >= speech_from, now=now)
        self._recent.clear()
        if reopened is None and self.interruptions.is_doubtful(self._echo, now):
            utterance.doubt(self._echo, sure_frames=min(onset.frames_ago, self._sure_run))
            self.interruptions.begin(utterance, now)
        else:
            self._announce(utterance, now)

    def _reopened(self, onset: Onset, now: float) -> Utterance | None:
        """Return the turn before if the words that begin belong to it."""
        last, spoken_ms = self._last, onset.frames_ago * FRAME_MS
        if last is None or last.is_full or self._silent_ms(last) - spoken_ms > CONTINUES_MS:
            return None
        if not self._hooks.turn_goes_on(last, now - spoken_ms / 1000, now):
            return None
        self._last, self._whole = None, last.copy()
        self._words.reopen(last)
        self._go_on(last)
        return last

    def _silent_ms(self, turn: Utterance) -> int:
        return self.heard_ms - (turn.started_ms + turn.length_ms if turn.ended_ms is None else turn.ended_ms)

    def _decide(self, utterance: Utterance, now: float) -> None:
        """End the turn if its sound and its words say so; what was read of it in a lull counts."""
        if self._detector is not None:
            is_read = utterance.readings in (ReadingState.READ, ReadingState.KNOWN)
            found = clause(utterance.reading, utterance.reading_language) if is_read else None
            if end := self._detector.decide(found, utterance.speech_ms):
                self._words.ask_early(utterance, now)
                self._end(end, now)

    @property
    def doubtful(self) -> Utterance | None:
        """Speech that may be no interruption."""
        return self._open if self._open is not None and self._open.is_doubtful else None

    def _settle(self, verdict: SpeechVerdict, now: float) -> None:
        """Act upon what speech during a reply turned out to be."""
        if verdict is SpeechVerdict.TAKEN_BACK:
            self._take_back(now)
        elif verdict is SpeechVerdict.INTERRUPTS and (utterance := self.doubtful):
            is_over = utterance.state is SpeechState.AWAITING
            self._announce(utterance, now)
            if is_over:
                self._commit(utterance, now)

    def _take_back(self, now: float) -> None:
        """Forget speech in progress."""
        if self._detector is not None:
            self._detector.end()
        self._drop_open(now)

    def _announce(self, utterance: Utterance, now: float) -> None:
        if utterance.state is not SpeechState.ANNOUNCED:
            utterance.step("announce")
            if self._detector is not None:
                is_hasty = self._responder.live is not None and self._pause_ms <= HASTY_MS
                self._detector.patience_ms = min(1.5 * self._pause_ms, HASTY_MS) if is_hasty else 0
            self._hooks.send(ev.SpeechStarted(audio_start_ms=utterance.started_ms, item_id=utterance.item_id))
            self.interruptions.speech_started(now)

    def _go_on(self, utterance: Utterance) -> None:
        """The pause was not the end."""
        utterance.go_on()
        self._hooks.speech_resumed()
        self._hooks.start(Abandon(item_id=utterance.item_id))

    def _ask(self, utterance: Utterance) -> None:
        if not utterance.is_speech or not self._detector or not self._detector.asks_model:
            return
        if utterance.judging_ms is None:  # a busy machine is not asked twice at once
            utterance.judging_ms = utterance.speech_ms
            self._detector.asked()
            is_early = self._detector.state is TurnState.SPEAKING
            self._hooks.start(JudgeTurn(utterance.item_id, utterance.version, utterance.audio(), is_early))

    def _end(self, end: End | None, now: float) -> None:
        utterance = self._open
        if end is None or utterance is None:
            return
        utterance.ended_ms = self.heard_ms - end.silence_ms
        if not utterance.is_doubtful:
            self._commit(utterance, now)
        elif utterance.may_be_speech:
            utterance.step("end")
            self._words.ask_early(utterance, now)
        else:
            self._take_back(now)

    def _commit(self, utterance: Utterance, now: float) -> None:
        """The turn is complete, unless voice detection is on and it was only a noise."""
        if self._detector is not None and not utterance.is_speech:
            self._drop_open(now)
            return
        self._open, self._last, self._whole = None, utterance, None
        self._ended_at = utterance.last_speech_at or now
        self.quiet_since = now
        self._stop(utterance)
        self._words.commit(utterance, now)

    def _stop(self, utterance: Utterance, *, is_valid: bool = True) -> None:
        """Every `speech_started` is followed by one `speech_stopped`."""
        if utterance.state is SpeechState.ANNOUNCED:
            end_ms = self.heard_ms if utterance.ended_ms is None else utterance.ended_ms
            self._hooks.send(
                ev.SpeechStopped(
                    audio_end_ms=max(utterance.started_ms, end_ms),
                    item_id=utterance.item_id,
                    reason=None if is_valid else "turn_invalid",
                    echo=utterance.echo is EchoRisk.LIKELY or None,
                )
            )

    def _find(self, item_id: str) -> Utterance | None:
        if self._open is not None and self._open.item_id == item_id:
            return self._open
        return self._words.find(item_id)

    def _drop_open(self, now: float) -> None:
        utterance, self._open = self._open, None
        if utterance is None:
            return
        if utterance.is_doubtful:
            self.interruptions.ducking.restore(now)
        self.quiet_since = now
        self._hooks.speech_resumed()
        self._hooks.start(Abandon(item_id=utterance.item_id))
        if self._whole is None:
            self._stop(utterance, is_valid=False)
        else:  # its first part is a turn of its own
            self._commit(self._whole.after(utterance), now)
            self._last = None


def response_is_wanted(config: SessionConfig) -> bool:
    """A committed turn gets a response without a request: voice detection is on and told so."""
    settings = config.turn_detection
    return settings is not None and settings.create_response and not config.listens_only
