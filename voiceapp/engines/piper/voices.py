"""Neural voices in VOICES_DIR: Piper models."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import Samples, Voice
from voiceapp.engines.piper.clauses import clauses
from voiceapp.engines.piper.model import ModelSettings, read_settings, sound_of
from voiceapp.engines.voices.neural import VoiceUnusable, in_lane
from voiceapp.engines.voices.pieces import MAX_CHARS, Piece
from voiceapp.engines.voices.sound import Loudness
from voiceapp.engines.voices.word_times import SpokenWord

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PiperVoice:
    """A `NeuralVoice`."""

    voice: Voice
    model: ModelSettings
    loudness: Loudness
    phonemizer: Espeak
    speaker: int = 0
    longest_piece: int = MAX_CHARS

    @property
    def sample_rate_hz(self) -> int:
        return self.model.sample_rate_hz

    async def sound(self, piece: Piece, *, rate: float, words: list[SpokenWord]) -> AsyncGenerator[Samples, None]:
        """See `NeuralVoice`; in one part."""
        found = clauses(piece)
        texts = list(found.texts)
        if self.model.espeak_voice:
            texts = await self.phonemizer.phonemes(texts, voice=self.model.espeak_voice)
        async with aclosing(in_lane(self._made(found.phonemes(texts), rate))) as parts:
            async for part in parts:
                yield part

    def _made(self, phonemes: str, rate: float) -> Iterator[Samples]:
        yield sound_of(self.model, phonemes, rate=rate, speaker=self.speaker)


def find_voices(phonemizer: Espeak) -> Iterator[PiperVoice]:
    """The voices of the Piper models of this server; files that cannot be read are named in the log."""
    for file in sorted(Path(settings.VOICES_DIR).glob("*.onnx.json")) if settings.VOICES_DIR else ():
        try:
            model = read_settings(file.with_suffix(""))
        except VoiceUnusable as error:
            logger.warning(error.for_operators)
            continue
        name, language = model.file.stem, model.language.split("-")[0].lower()
        if not model.speakers:
            yield PiperVoice(Voice(name, name, language), model, Loudness(), phonemizer)
        for speaker, number in model.speakers.items():
            voice = Voice(f"{name}/{speaker}", f"{name}, {speaker}", language)
            yield PiperVoice(voice, model, Loudness(), phonemizer, number)
