"""Recognition of utterances: the turn model and the recognizer at work for one session."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Sequence

import numpy as np

from voiceapp import tracing
from voiceapp.engines.interfaces import Recognizer, TurnPredictor
from voiceapp.engines.models.lanes import LaneFull, has_idle_core, is_calm
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.errors import EngineError, InvalidParameter
from voiceapp.protocol.work import (
    ItemRecognitionFailed,
    ItemRecognized,
    JudgeTurn,
    OfHearing,
    RecognitionFailed,
    Recognize,
    Recognized,
    RecognizeItem,
    Result,
    TurnJudged,
)

logger = logging.getLogger(__name__)


class HearingPipeline:
    """Carries out `JudgeTurn`, `Recognize` and `RecognizeItem` for one session."""

    def __init__(
        self,
        *,
        turns: TurnPredictor,
        recognizer: Recognizer,
        done: Callable[[Result], None],
        refuse: Callable[[InvalidParameter], None],
        terms: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`done` takes each result; `refuse` tells the client that the audio of an item cannot be read; `terms` are the
        session's, at the time of a reading.
        """
        self._turns = turns
        self._recognizer = recognizer
        self._done = done
        self._refuse = refuse
        self._terms = terms

    async def carry_out(self, work: OfHearing) -> None:
        """Do the work and hand over what it came to; never raises for what an engine or a client can do wrong."""
        if isinstance(work, JudgeTurn):
            await self._judge_turn(work)
        elif isinstance(work, Recognize):
            await self._recognize(work)
        else:
            await self._recognize_item(work)

    async def _judge_turn(self, work: JudgeTurn) -> None:
        if work.is_early and not is_calm():
            self._done(TurnJudged(work.item_id, work.version, None))
            return
        try:
            probability = await self._turns.end_probability(work.audio)
        except EngineError as error:  # the cap on the silence ends the turn then
            logger.debug("turn model: %s", error.message)
            probability = 0.0
        self._done(TurnJudged(work.item_id, work.version, probability))

    async def _recognize(self, work: Recognize) -> None:
        if work.is_early and not (self._recognizer.reads_early and is_calm()):
            self._done(RecognitionFailed(work, LaneFull.code, "The turn is read when it has ended."))
            return
        if work.is_caption and not has_idle_core():
            self._done(RecognitionFailed(work, LaneFull.code, "Words are only shown early where a core is idle."))
            return
        try:
            with tracing.call("transcription", "", **{"voiceapp.is_partial": work.is_partial}):
                found = await self._recognizer.recognize(
                    work.audio,
                    language=work.language,
                    among=work.among,
                    urgent=not work.is_partial,
                    terms=self._terms(),
                )
        except EngineError as error:
            self._done(RecognitionFailed(work, error.code, error.message))
        else:
            self._done(Recognized(work, found.text, found.confidence, found.language, found.is_detected))

    async def _recognize_item(self, work: RecognizeItem) -> None:
        words = ""
        try:
            audio = base64.b64decode(work.audio, validate=True)
            converter = InputConverter(work.audio_format)
            samples = np.concatenate((converter.convert(audio), converter.flush()))
            words = (await self._recognizer.recognize(samples, terms=self._terms())).text
        except (binascii.Error, ValueError):
            self._refuse(InvalidParameter("The item's audio is not valid base64.", param="item.content"))
        except InvalidParameter as refused:
            self._refuse(refused)
        except EngineError as error:
            self._done(ItemRecognitionFailed(work.item_id, error.code, error.message))
        self._done(ItemRecognized(work.item_id, words))
