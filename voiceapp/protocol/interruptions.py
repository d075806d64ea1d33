"""Whether sound during a reply interrupts it. What may be the reply's own echo must prove to be somebody's words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from difflib import SequenceMatcher

from voiceapp.protocol.audio import FRAME_MS
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.events import ReplyDucked, ReplyRestored, ServerEvent
from voiceapp.protocol.responding import Responder
from voiceapp.protocol.response import Response
from voiceapp.protocol.states import EchoRisk, SpeechVerdict
from voiceapp.protocol.turns import MIN_WORD_CONFIDENCE
from voiceapp.protocol.utterance import Utterance

ECHO_TAIL_S = 1.0
"""An echo may be heard so long after the end of a reply."""
SURE_FRAMES = 3
"""Frames of speech that cannot be an echo: then it is the caller who speaks."""
LONG_SPEECH_MS = 900
"""Nobody says "mm-hm" for so long."""
WORD_MS = 400
"""So much speech is a word and not the beginning of a longer one."""
NEARLY_OVER_S = 0.5
"""A short "yes" at the end of a reply is an answer to it."""
SAME_LETTERS = 0.6
"""Share of the letters heard that the reply has too, in order, for them to be its echo."""
MARGIN_MS = 1000.0
"""Where in a sentence a word is said is not known exactly."""
SPOKEN_CHARACTERS = 160
"""How much of the reply is compared: an echo is of what was said last."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
COMMANDS = frozenset({"stop", "wait", "hold", "pause", "quiet", "enough", "cancel", "no"})
"""Words that interrupt as soon as they are heard."""
# fmt: off
BACK_CHANNELS = frozenset((
    "mm", "hm", "hmm", "mhm", "mmhm", "mm-hm", "mm-hmm", "mhmm", "uh-huh", "huh", "uh", "um", "ah", "aha", "oh", "ooh",
    "yes", "yeah", "yep", "yup", "ya", "okay", "ok", "okey", "right", "sure", "alright", "fine", "good", "great",
    "nice", "cool", "true", "exactly", "indeed", "really", "wow", "i", "see", "got", "it", "all", "of", "course",
))
# fmt: on
"""What a listener says to show that they listen."""
PARTICLES = frozenset(("a", "and", "but", "hem", "him", "so", "the", "them", "then"))
"""They ask for nothing by themselves; "hmm" is often understood as one of them."""
MOST_WORDS = 4


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
        self._send = send
        self._ducked: Response | None = None

    def is_doubtful(self, echo: EchoRisk, now: float) -> bool:
        """Speech that begins now does not interrupt yet: it is waited for what it is."""
        response = self._responder.response
        if response is None or not self._may_interrupt or not response.playout.sent_ms:
            return False
        is_heard = response.is_live or now < response.playout.heard_at
        if echo is not EchoRisk.NONE:
            return is_heard or now < response.playout.heard_at + ECHO_TAIL_S
        return is_heard and self.config.interruptions == "duck"

    def begin(self) -> None:
        """Somebody may have begun to speak into the reply."""
        response = self._responder.response
        if self.config.interruptions == "duck" and response is not None and self._ducked is None:
            self._ducked = response
            self._send(ReplyDucked(response_id=response.id))

    def take_back(self) -> None:
        """It was no interruption: the reply goes on as before."""
        ducked, self._ducked = self._ducked, None
        if ducked is not None:
            self._send(ReplyRestored(response_id=ducked.id))

    def speech_started(self, now: float) -> None:
        """The caller speaks: the reply falls silent."""
        self._ducked = None
        if not self._may_interrupt:
            return
        if self._responder.live:
            self._responder.cancel("turn_detected", now)
        elif self._responder.response:  # all of it was handed out already, and the caller speaks into the last words
            self._responder.cut_playout()

    def judge_sound(self, utterance: Utterance) -> SpeechVerdict:
        """What is known without words."""
        if utterance.sure_frames >= SURE_FRAMES and self.config.interruptions != "duck":
            return SpeechVerdict.INTERRUPTS
        if utterance.speech_ms >= LONG_SPEECH_MS and utterance.sure_frames * FRAME_MS * 2 > utterance.speech_ms:
            return SpeechVerdict.INTERRUPTS
        return SpeechVerdict.OPEN

    def judge(
        self, words: str, utterance: Utterance, now: float, *, confidence: float, is_complete: bool
    ) -> SpeechVerdict:
        """What the words so far say, or all of them up to a pause."""
        spoken = _WORD.findall(words.casefold())
        is_clean = utterance.sure_frames >= SURE_FRAMES
        if not spoken or (not is_clean and self._may_be_echo(words, utterance, now)):
            return SpeechVerdict.TAKEN_BACK if is_complete else SpeechVerdict.OPEN
        if spoken[0] in COMMANDS:
            return SpeechVerdict.INTERRUPTS
        if len(spoken) <= MOST_WORDS and all(map(_says_nothing, spoken)):
            if not is_complete:
                return SpeechVerdict.OPEN
            return SpeechVerdict.INTERRUPTS if self._left_s(now) < NEARLY_OVER_S else SpeechVerdict.TAKEN_BACK
        if len(spoken) == 1 and confidence < MIN_WORD_CONFIDENCE:
            return SpeechVerdict.TAKEN_BACK if is_complete else SpeechVerdict.OPEN
        is_enough = is_complete or len(spoken) > 1 or utterance.speech_ms >= WORD_MS
        return SpeechVerdict.INTERRUPTS if is_enough else SpeechVerdict.OPEN

    @property
    def _may_interrupt(self) -> bool:
        settings = self.config.turn_detection
        return settings is not None and settings.interrupt_response

    def _left_s(self, now: float) -> float:
        """How much of the reply is still to be heard, as far as is known."""
        response = self._responder.response
        if response is None:
            return 0.0
        if response.is_live and not response.playout.is_complete:
            return math.inf
        return response.playout.pushed_ms / 1000 - response.playout.heard_ms(now) / 1000

    def _may_be_echo(self, words: str, utterance: Utterance, now: float) -> bool:
        """Sound that came with an echo: too short for words, or with the reply's own."""
        if not utterance.has_echo:
            return False
        return utterance.speech_ms < WORD_MS or self._is_echo(words, now)

    def _is_echo(self, words: str, now: float) -> bool:
        response = self._responder.response
        if response is None or response.message is None:
            return False
        text = _letters(response.message.said_until(response.playout.heard_ms(now) + MARGIN_MS)[-SPOKEN_CHARACTERS:])
        heard = _letters(words[-SPOKEN_CHARACTERS:])
        if not heard:
            return True
        same = sum(block.size for block in SequenceMatcher(None, heard, text, autojunk=False).get_matching_blocks())
        return same / len(heard) >= SAME_LETTERS


def _says_nothing(word: str) -> bool:
    return len(word) == 1 or word in BACK_CHANNELS or word in PARTICLES


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
