"""Speech from text by neural voices, and by espeak-ng where there is none or it fails."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import cached_property

import numpy as np
from django.conf import settings

from voiceapp.engines.espeak.voice import VOICES as ROBOTIC
from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import Provider, Samples, Voice
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.piper.clauses import Piece, pieces
from voiceapp.engines.piper.model import VoiceUnusable, model_of
from voiceapp.engines.piper.sound import Finisher, Loudness
from voiceapp.engines.piper.voices import NeuralVoice, find_voices, own_name
from voiceapp.engines.pronunciation.english import spoken_english
from voiceapp.engines.sound.resampling import OutputConverter
from voiceapp.formats import one_line
from voiceapp.memory import memory_bytes
from voiceapp.protocol.audio import to_pcm16

logger = logging.getLogger(__name__)

SENTENCE_PAUSE_S = 0.2
CLAUSE_PAUSE_S = 0.08
"""Silence between two pieces of one text, at the usual rate."""
CHUNK_S = 0.1
"""Sound is handed over in chunks of this length."""
MAX_UNKNOWN = 100
"""So many names that are no voice's are logged, for anybody may write more."""


class Piper(Provider):
    """A `Synthesizer`; shared by all conversations, its models working in the `voice` lane."""

    def __init__(self) -> None:
        self.phonemizer = Espeak()
        """Finds the phonemes of neural voices, and speaks where there is none."""
        self._broken: set[str] = set()
        """Names of voices whose model does not load: they are spoken by espeak-ng."""
        self._unknown: set[str] = set()
        """Names that callers wrote, that are no voice's, and that the log has told."""

    @cached_property
    def _neural(self) -> dict[str, NeuralVoice]:
        return {each.voice.name: each for each in find_voices()}

    @property
    def voices(self) -> Sequence[Voice]:
        """The neural ones first."""
        return (*(each.voice for each in self._neural.values()), *ROBOTIC)

    @cached_property
    def default_voice(self) -> str:
        """DEFAULT_VOICE; without one the first neural voice, where there is one and memory enough for it."""
        if settings.DEFAULT_VOICE:
            if wanted := self._known(str(settings.DEFAULT_VOICE)):
                return wanted
            logger.error("DEFAULT_VOICE is %r, which is no voice of this server.", settings.DEFAULT_VOICE)
        if not self._neural:
            logger.warning("No neural voice is on this server: espeak-ng speaks. `manage.py fetch_models` brings one.")
        elif memory_bytes() < settings.NEURAL_VOICE_MIN_MEMORY_MB * 1024**2:
            logger.info("This server has little memory: espeak-ng speaks. DEFAULT_VOICE chooses another voice.")
        else:
            return next(iter(self._neural))
        return ROBOTIC[0].name

    async def warm(self) -> None:
        """Start espeak-ng, and load the model of the default voice."""
        await self.phonemizer.warm()
        async with aclosing(self.speak("Ready.", voice=self.default_voice, sample_rate_hz=24_000)) as sound:
            async for _ in sound:
                pass

    async def close(self) -> None:
        """End espeak-ng; a later `speak` would start it again."""
        await self.phonemizer.close()

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        """See `Synthesizer`. Chunks of 100 ms; silence at both ends is at most 60 ms."""
        name = self._known(voice) or self._default_for(voice)
        neural = self._neural.get(name)
        if neural is None or neural.voice.language == "en":
            text = spoken_english(text)
        has_begun = False
        if neural is not None and name not in self._broken:
            try:
                async with aclosing(self._speak(text, neural, sample_rate_hz, rate)) as sound:
                    async for pcm in sound:
                        has_begun = True
                        yield pcm
                return
            except VoiceUnusable as error:
                self._broken.add(name)
                logger.warning("voice %s: espeak-ng speaks in its place: %s", name, error.for_operators)
                if has_begun:
                    raise
        async with aclosing(self.phonemizer.speak(text, voice=name, sample_rate_hz=sample_rate_hz, rate=rate)) as sound:
            async for pcm in sound:
                yield pcm

    def _known(self, name: str) -> str:
        """The name of a voice of ours; empty when there is none."""
        ours = own_name(name)
        return ours if ours in self._neural or any(ours == each.name for each in ROBOTIC) else ""

    def _default_for(self, unknown: str) -> str:
        """The voice that speaks for a name that nobody knows, which the log tells once."""
        name = self._known(self.default_voice) or ROBOTIC[0].name
        if unknown not in self._unknown and len(self._unknown) < MAX_UNKNOWN:
            self._unknown.add(unknown)
            logger.warning("voice %s: not known, %s speaks in its place", one_line(unknown, 80), name)
        return name

    async def _speak(
        self, text: str, voice: NeuralVoice, sample_rate_hz: int, rate: float
    ) -> AsyncGenerator[bytes, None]:
        # Higher is quicker, so it is spoken slower first.
        source_rate_hz = round(voice.model.sample_rate_hz * voice.pitch)
        chunk = 2 * int(CHUNK_S * sample_rate_hz)
        pause_s = 0.0
        for piece in pieces(text):
            pcm = bytes(2 * int(pause_s * sample_rate_hz))
            has_words = False
            converter = OutputConverter(source_rate_hz, sample_rate_hz)
            async with aclosing(self._sound(piece, voice, rate / voice.pitch)) as parts:
                async for sound in parts:
                    if not len(sound):
                        continue
                    has_words = True
                    pcm += converter.convert(to_pcm16(sound))
                    whole = len(pcm) - len(pcm) % chunk
                    for start in range(0, whole, chunk):
                        yield pcm[start : start + chunk]
                    pcm = pcm[whole:]
            if has_words:
                if pcm := pcm + converter.flush():
                    yield pcm
                pause_s = (SENTENCE_PAUSE_S if piece.is_sentence else CLAUSE_PAUSE_S) / rate

    async def _sound(self, piece: Piece, voice: NeuralVoice, rate: float) -> AsyncGenerator[Samples, None]:
        """The finished sound of one piece, in parts; some may be empty."""
        clauses = list(piece.clauses)
        if voice.model.espeak_voice:
            clauses = await self.phonemizer.phonemes(clauses, voice=voice.model.espeak_voice)
        phonemes = piece.phonemes(clauses)
        loudness, parts, part = await lanes().voice.run(_begin, voice, phonemes, rate)
        finisher = Finisher(loudness, voice.model.sample_rate_hz)
        unheard: list[Samples] = []
        while part is not None:
            if loudness.is_known:
                yield finisher.feed(part)
            else:
                unheard.append(part)
            part = await lanes().voice.run(next, parts, None)
        if unheard:
            yield finisher.feed(np.concatenate(unheard))
        yield finisher.flush()


def _begin(voice: NeuralVoice, phonemes: str, rate: float) -> tuple[Loudness, Iterator[Samples], Samples | None]:
    """Return the voice's loudness, the sound of all parts but the first, and that."""
    model = model_of(voice.model)
    parts = model.speak(phonemes, rate=rate, speaker=voice.speaker)
    return model.loudness(voice.speaker), parts, next(parts, None)
