"""The user's side of a session: from turns to their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.hearing.utterance import Utterance
from voiceapp.protocol.states import ReadingState, SpeechState
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import Abandon, RecognitionFailed, Recognize, Recognized, Work

EARLY_CONFIDENCE = 0.8
"""An early reading that is less sure is made again when more of the silence is there, in which faint sounds hide."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks and facts that the session provides."""

    send: Callable[[ev.ServerEvent], None]
    start: Callable[[Work], None]
    new_id: Callable[[str], str]
    turn_committed: Callable[[Utterance, float], None]
    """A turn is complete; its words may follow later."""
    words_known: Callable[[Utterance, float], None]
    """The words of a committed turn, possibly none."""
    words_failed: Callable[[Utterance, str, str, float], None]
    """No words for a committed turn: error code and message."""
    words_expected: Callable[[Utterance], None]
    """The words of a turn, if the present pause is its end."""
    turn_goes_on: Callable[[Utterance, float, float], bool]
    """Take back the reply to a committed turn that goes on, if nothing of it was heard up to the first of two times."""
    speech_resumed: Callable[[], None]
    """The pause was not the end: there will be more words, or none."""


class TurnWords:
    """Readings asked for; words shown while a turn goes on, and kept when it is over."""

    def __init__(self, config: SessionConfig, hooks: Hooks) -> None:
        self.config = config
        self._hooks = hooks
        self._committed: dict[str, Utterance] = {}
        """Turns whose words are not known yet, in order."""

    @property
    def is_settled(self) -> bool:
        """The words of every committed turn are known."""
        return not self._committed

    def find(self, item_id: str) -> Utterance | None:
        """The committed turn with this id, while its words are not known."""
        return self._committed.get(item_id)

    def reopen(self, utterance: Utterance) -> None:
        """A committed turn goes on."""
        utterance.reopen()
        self._committed.pop(utterance.item_id, None)

    def close(self) -> None:
        """Whatever comes now is ignored."""
        for item_id in self._committed:
            self._hooks.start(Abandon(item_id=item_id))
        self._committed.clear()

    def ask_early(self, utterance: Utterance, now: float) -> None:
        """Ask for the words on the speculation that this pause is the end; they may be known or on their way."""
        if not utterance.may_be_speech or utterance.words is not None:
            return
        if utterance.readings is ReadingState.PARTIAL:  # what may be the last words must not wait for the words so far
            self._hooks.start(Abandon(item_id=utterance.item_id))
        self._ask(utterance, "pause")
        if utterance.readings is ReadingState.KNOWN:
            self._take(utterance, utterance.reading, utterance.confidence, now)

    def ask_partial(self, utterance: Utterance, *, is_lull: bool) -> None:
        """Ask for the words so far, if it is time to."""
        is_lull = is_lull and not utterance.is_doubtful
        is_caption = not is_lull and not utterance.is_doubtful
        if (is_caption and not self.config.captions) or not utterance.wants_partial(is_lull=is_lull):
            return
        utterance.read("lull" if is_lull else "show")
        self._read(utterance, is_partial=True, is_early=is_lull, is_caption=is_caption)

    def commit(self, utterance: Utterance, now: float) -> None:
        """A turn is complete; find its words, if they are not known yet."""
        utterance.ended_at = now
        utterance.step("commit")
        self._committed[utterance.item_id] = utterance
        self._hooks.turn_committed(utterance, now)
        if not utterance.may_be_speech:
            utterance.keep_words("")
        if utterance.words is not None:
            self._settle(utterance, now)
        else:
            self._ask(utterance, "end")

    def recognized(self, utterance: Utterance | None, recognized: Recognized, now: float) -> None:
        """The words of a reading: shown when partial, kept when final, dropped when outdated or the turn is gone."""
        work = recognized.work
        if utterance is None or work.version != utterance.version:
            return
        utterance.note_language(recognized.language, is_detected=recognized.is_detected)
        if not work.is_partial:
            self._take(utterance, recognized.words, recognized.confidence, now)
            return
        if utterance.words is not None:  # a later reading overtook this one
            return
        utterance.reading, utterance.confidence = recognized.words, recognized.confidence
        is_awaited = utterance.readings is ReadingState.AWAITED
        self._ask(utterance, "fail" if work.is_early and recognized.confidence < EARLY_CONFIDENCE else "read")
        if utterance.readings is ReadingState.KNOWN:
            self._take(utterance, recognized.words, recognized.confidence, now)
        elif not is_awaited and utterance.state is not SpeechState.COMMITTED:
            self._show(utterance, recognized.words, now)

    def failed(self, utterance: Utterance | None, failed: RecognitionFailed, now: float) -> None:
        """No words from this reading. A failed speculation is tried again when the turn ends."""
        work = failed.work
        if utterance is None or work.version != utterance.version:
            return
        if work.is_partial:
            self._ask(utterance, "fail")
            return
        utterance.read("fail_final")
        if utterance.state is not SpeechState.COMMITTED:
            return
        if utterance.keep_stable_words():
            self._settle(utterance, now)
            return
        self._committed.pop(utterance.item_id, None)
        utterance.drop_audio()
        self._hooks.words_failed(utterance, failed.code, failed.message, now)

    def _take(self, utterance: Utterance, words: str, confidence: float, now: float) -> None:
        """The words of all that was said, as far as the caller says no more."""
        utterance.keep_words(words, confidence)
        if utterance.state is SpeechState.COMMITTED:
            self._settle(utterance, now)
            return
        self._show(utterance, words, now)
        if utterance.words and not utterance.is_doubtful:
            self._hooks.words_expected(utterance)

    def _settle(self, utterance: Utterance, now: float) -> None:
        self._committed.pop(utterance.item_id, None)
        if not utterance.words:
            utterance.keep_stable_words()
        utterance.recognized_at = now
        self._hooks.words_known(utterance, now)

    def _ask(self, utterance: Utterance, name: str) -> None:
        """Take a step of the readings, and have the final words read if it leads there."""
        before = utterance.readings
        if utterance.read(name) is ReadingState.FINAL and before is not ReadingState.FINAL:
            self._read(utterance)

    def _read(self, utterance: Utterance, **kind: bool) -> None:
        language, speech = self.config.transcription_language, utterance.speech()
        among = None if language and not self.config.is_language_noted else self.config.languages
        self._hooks.start(Recognize(utterance.item_id, utterance.version, speech, language, among, **kind))

    def _show(self, utterance: Utterance, words: str, now: float) -> None:
        """The words so far, while the caller may still go on."""
        if words and utterance.is_speech and not utterance.is_doubtful:
            stable, rest = utterance.partial(words, now)
            event = ev.TranscriptionDelta(item_id=utterance.item_id, text=stable, stash=rest)
            self._hooks.send(
                replace(event, language=utterance.language or self.config.transcription_language or event.language)
            )
