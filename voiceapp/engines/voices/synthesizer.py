"""Speech from text by the voices of this process: hibari's, Piper's, and espeak-ng's for all that these cannot say."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property
from itertools import chain

import numpy as np
from django.conf import settings

from voiceapp.catalogue.client_names import CLIENT_NAMES
from voiceapp.engines.espeak.voice import VOICES as ROBOTIC
from voiceapp.engines.espeak.voice import Espeak, voice_of
from voiceapp.engines.hibari.voices import find_voices as hibari_voices
from voiceapp.engines.interfaces import Provider, Samples, Voice
from voiceapp.engines.kokoro.voices import find_voices as kokoro_voices
from voiceapp.engines.piper.voices import find_voices as piper_voices
from voiceapp.engines.sound.resampling import OutputConverter
from voiceapp.engines.voices.neural import NeuralVoice, TextUnreadable, VoiceUnusable
from voiceapp.engines.voices.pieces import MAX_CHARS, Piece, pieces
from voiceapp.engines.voices.sound import Finisher
from voiceapp.engines.voices.word_times import SpokenWord, timed
from voiceapp.errors import EngineTimeout
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


class EmbeddedSpeech(Provider):
    """A `Synthesizer`; shared by all conversations, its models working in the `voice` lane."""

    def __init__(self) -> None:
        self.espeak = Espeak()
        """Started for the first text that needs it: for Piper's voices it finds the phonemes."""
        self._broken: set[str] = set()
        """Names of voices whose model does not load."""
        self._unknown: set[str] = set()
        """Names that callers wrote, that are no voice's, and that the log has told."""

    @cached_property
    def _neural(self) -> dict[str, NeuralVoice]:
        found: dict[str, NeuralVoice] = {}
        others = chain[NeuralVoice](piper_voices(self.espeak), kokoro_voices(self.espeak))
        for voice in chain[NeuralVoice](hibari_voices(), others):
            found.setdefault(voice.voice.name, voice)
        return found

    @property
    def voices(self) -> Sequence[Voice]:
        """The neural ones first."""
        return (*(each.voice for each in self._neural.values()), *ROBOTIC)

    @cached_property
    def default_voice(self) -> str:
        """DEFAULT_VOICE; without one the first neural voice, where there is memory enough for it."""
        if settings.DEFAULT_VOICE:
            if wanted := self.voice_named(str(settings.DEFAULT_VOICE)):
                return wanted
            logger.error("DEFAULT_VOICE is %r, which is no voice of this server.", settings.DEFAULT_VOICE)
        if memory_bytes() < settings.NEURAL_VOICE_MIN_MEMORY_MB * 1024**2:
            logger.info("This server has little memory: espeak-ng speaks. DEFAULT_VOICE chooses another voice.")
            return ROBOTIC[0].name
        return next(iter(self._neural))

    async def warm(self) -> None:
        """Load the model of the default voice."""
        async with aclosing(self.speak("Ready.", voice=self.default_voice, sample_rate_hz=24_000)) as sound:
            async for _ in sound:
                pass

    async def close(self) -> None:
        """End espeak-ng; a later `speak` would start it again."""
        await self.espeak.close()

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        """See `Synthesizer`. Chunks of 100 ms; silence at both ends is at most 60 ms."""
        name = self.voice_named(voice) or self._default_for(voice)
        language = next(voice.language for voice in self.voices if voice.name == name)
        pause_s = 0.0
        longest = self._neural[name].longest_piece if name in self._neural else MAX_CHARS
        for piece in pieces(text, language=language, longest=longest):
            pause = bytes(2 * int(pause_s * sample_rate_hz))
            async with aclosing(self._said(piece, name, language, sample_rate_hz, rate)) as sound:
                async for made in sound:
                    if pause:
                        yield pause
                    pause = b""
                    yield made
                    pause_s = (SENTENCE_PAUSE_S if piece.is_sentence else CLAUSE_PAUSE_S) / rate

    def voice_named(self, name: str) -> str:
        """The name of a voice of ours; empty when there is none."""
        ours = name if name in self._neural else own_name(name)
        return ours if ours in self._neural or any(ours == each.name for each in ROBOTIC) else ""

    def _default_for(self, unknown: str) -> str:
        """The voice that speaks for a name that nobody knows, which the log tells once."""
        name = self.voice_named(self.default_voice) or ROBOTIC[0].name
        if unknown and unknown not in self._unknown and len(self._unknown) < MAX_UNKNOWN:
            self._unknown.add(unknown)
            logger.warning("voice %s: not known, %s speaks in its place", one_line(unknown, 80), name)
        return name

    async def _said(
        self, piece: Piece, name: str, language: str, sample_rate_hz: int, rate: float
    ) -> AsyncGenerator[bytes, None]:
        """A piece by the voice `name`, or by espeak-ng where that voice cannot say it."""
        neural = self._neural.get(name)
        if piece.script and language == "en":
            name, neural = voice_of(piece.script), None
        if neural is not None:
            if name not in self._broken:
                has_begun = False
                try:
                    async with aclosing(_finished(piece, neural, sample_rate_hz, rate)) as sound:
                        async for pcm in sound:
                            has_begun = True
                            yield pcm
                    if has_begun:
                        return
                except VoiceUnusable as error:
                    self._broken.add(name)
                    logger.warning("voice %s: espeak-ng speaks in its place: %s", name, error.for_operators)
                except (TextUnreadable, EngineTimeout) as error:
                    if has_begun:
                        raise
                    logger.warning("voice %s: espeak-ng reads a text in its place: %s", name, error.for_operators)
            name = voice_of(language)
        async with aclosing(
            self.espeak.speak(piece.text, voice=name, sample_rate_hz=sample_rate_hz, rate=rate)
        ) as sound:
            async for pcm in sound:
                yield pcm


async def _finished(piece: Piece, voice: NeuralVoice, sample_rate_hz: int, rate: float) -> AsyncGenerator[bytes, None]:
    """Sound of a piece by a neural voice, in chunks."""
    chunk = 2 * int(CHUNK_S * sample_rate_hz)
    converter = OutputConverter(voice.sample_rate_hz, sample_rate_hz)
    finisher = Finisher(voice.loudness, voice.sample_rate_hz)
    words: list[SpokenWord] = []

    def found(made: int) -> list[SpokenWord]:
        """Return the words that became known, from here on."""
        hz, since = voice.sample_rate_hz, finisher.cut + made * voice.sample_rate_hz / sample_rate_hz
        known = [SpokenWord(text, (begin - since) / hz, (end - since) / hz) for text, begin, end in words]
        words.clear()
        return known

    pcm, made = b"", 0
    async with aclosing(_levelled(piece, voice, rate, finisher, words)) as parts:
        async for sound in parts:
            pcm += converter.convert(to_pcm16(sound)) if len(sound) else b""
            whole = len(pcm) - len(pcm) % chunk
            for start in range(0, whole, chunk):
                yield timed(pcm[start : start + chunk], found(made))
                made += chunk // 2
            pcm = pcm[whole:]
    if pcm := pcm + converter.flush():
        yield timed(pcm, found(made))


async def _levelled(
    piece: Piece, voice: NeuralVoice, rate: float, finisher: Finisher, words: list[SpokenWord]
) -> AsyncGenerator[Samples, None]:
    """Sound of a piece without silence at its ends, at the level of all voices, in parts; some may be empty."""
    unheard: list[Samples] = []
    async with aclosing(voice.sound(piece, rate=rate, words=words)) as parts:
        async for part in parts:
            if voice.loudness.is_known:
                yield finisher.feed(part)
            else:
                unheard.append(part)
    if unheard:
        yield finisher.feed(np.concatenate(unheard))
    yield finisher.flush()


def own_name(name: str) -> str:
    """Our voice for a name that client libraries have built in; any other name as it is."""
    wanted = name.casefold()
    for ours, theirs in CLIENT_NAMES["voices"].items():
        if any(wanted == each.casefold() for each in theirs):
            return ours
    return name
