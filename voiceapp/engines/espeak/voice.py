"""Speech from text by espeak-ng: robotic, intelligible, instant.

The program that speaks is GPL and stays a program of its own, behind a pipe (`child.py`); here is what we do
around it: voices, rates, long texts, sample rates, and starting it again when it died.
"""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from voiceapp.engines.espeak.process import PROGRAM, EspeakProcess, ProgramDied
from voiceapp.engines.interfaces import Provider, Voice
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.sound.resampling import OutputConverter
from voiceapp.errors import EngineUnavailable

VOICES = (
    Voice("en-us", "American, robotic"),
    Voice("en-us+m3", "American, deeper, robotic"),
    Voice("en-us+f3", "American, female, robotic"),
    Voice("en-gb-x-rp", "British, robotic"),
    Voice("en-gb-scotland", "Scottish, robotic"),
    Voice("ar", "Arabic, robotic", "ar"),
    Voice("cmn", "Chinese, robotic", "zh"),
    Voice("nl", "Dutch, robotic", "nl"),
    Voice("fr", "French, robotic", "fr"),
    Voice("de", "German, robotic", "de"),
    Voice("el", "Greek, robotic", "el"),
    Voice("he", "Hebrew, robotic", "he"),
    Voice("hi", "Hindi, robotic", "hi"),
    Voice("it", "Italian, robotic", "it"),
    Voice("ja", "Japanese, robotic", "ja"),
    Voice("ko", "Korean, robotic", "ko"),
    Voice("pl", "Polish, robotic", "pl"),
    Voice("pt", "Portuguese, robotic", "pt"),
    Voice("ru", "Russian, robotic", "ru"),
    Voice("es", "Spanish, robotic", "es"),
    Voice("sv", "Swedish, robotic", "sv"),
    Voice("tr", "Turkish, robotic", "tr"),
    Voice("uk", "Ukrainian, robotic", "uk"),
)
"""espeak-ng's names: a language or accent, and after the plus a timbre. The first is the default."""

WORDS_PER_MINUTE = 165
"""Best understood of the rates measured."""
MIN_WORDS_PER_MINUTE, MAX_WORDS_PER_MINUTE = 80, 450
"""Range of rates that espeak-ng accepts."""
MAX_CLAUSE_CHARS = 300
"""About 20 s of speech: what is made at one go, and so what is held for a slow listener at most."""
SILENT_START = re.compile(r"^(?:[\s\"'“”‘’(\[{*_]|[-–—…]+\s)+")
"""Marks that are not pronounced, for which espeak-ng waits 120 ms before the first word."""
_LANGUAGE_MARK = re.compile(r"\([a-z-]+\)")
"""Among phonemes: those that follow are of another language."""
ATTEMPTS = 2
"""Attempts at a text on which the program dies."""


class Espeak(Provider):
    """A `Synthesizer`; shared by all conversations."""

    voices = VOICES
    default_voice = VOICES[0].name

    def __init__(self, program: Path = PROGRAM, *, patience_s: float = 5.0) -> None:
        """`program` speaks the protocol of `child.py`; it is ended when it makes no sound for `patience_s`."""
        self._program = program
        self._patience_s = patience_s
        self._process: EspeakProcess | None = None
        self._starting = threading.Lock()

    async def warm(self) -> None:
        """Start the program and let it speak a word."""
        async with aclosing(self._say("Ready.", voice=VOICES[0].name, rate=1.0, pause=False)) as sound:
            async for _ in sound:
                pass

    async def close(self) -> None:
        """End the program; a later `speak` would start it again."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    @property
    def process_id(self) -> int | None:
        return self._process.process_id if self._process is not None and self._process.is_running else None

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        """See `Synthesizer`. Pieces of about 40 ms; silence at both ends is at most 60 ms."""
        if not any(known.name == voice for known in VOICES):
            voice = VOICES[0].name
        pieces = list(clauses(text))
        resampler: OutputConverter | None = None
        for number, clause in enumerate(pieces, start=1):
            async with aclosing(self._say(clause, voice=voice, rate=rate, pause=number < len(pieces))) as sound:
                async for source_rate_hz, pcm in sound:
                    resampler = resampler or OutputConverter(source_rate_hz, sample_rate_hz)
                    if converted := resampler.convert(pcm):
                        yield converted
        if resampler is not None and (rest := resampler.flush()):
            yield rest

    async def phonemes(self, clauses: Sequence[str], *, voice: str) -> list[str]:
        """Return the phonemes of each clause in one of espeak-ng's voices, in the International Phonetic Alphabet.

        Raises:
            EngineUnavailable: if the program cannot say so.
        """
        deaths = 0
        while True:
            process = await self._running()
            try:
                found = await process.phonemes(clauses, voice=voice)
                return [_LANGUAGE_MARK.sub("", phonemes) for phonemes in found]
            except ProgramDied as death:
                deaths += death.at_fault
                if deaths >= ATTEMPTS:
                    raise EngineUnavailable("The speech synthesizer stopped while it read this text.") from death

    async def _say(
        self, clause: str, *, voice: str, rate: float, pause: bool
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Sample rate and sound of one clause; begins again with a new program when the old one died silently."""
        words_per_minute = min(max(round(WORDS_PER_MINUTE * rate), MIN_WORDS_PER_MINUTE), MAX_WORDS_PER_MINUTE)
        deaths = 0
        while True:
            process = await self._running()
            has_begun = False
            try:
                async with aclosing(
                    process.speak(clause, voice=voice, words_per_minute=words_per_minute, pause=pause)
                ) as sound:
                    async for pcm in sound:
                        has_begun = True
                        yield process.sample_rate_hz, pcm
                return
            except ProgramDied as death:
                deaths += death.at_fault
                if has_begun or deaths >= ATTEMPTS:
                    raise EngineUnavailable("The speech synthesizer stopped while it spoke this text.") from death

    async def _running(self) -> EspeakProcess:
        process = self._process
        if process is not None and process.is_running:
            return process
        return await lanes().reply.run(self._start)

    def _start(self) -> EspeakProcess:
        with self._starting:
            if self._process is None or not self._process.is_running:
                self._process = EspeakProcess(self._program, patience_s=self._patience_s)
            return self._process


def clauses(text: str) -> Iterator[str]:
    """`text` in pieces of at most 300 characters, cut behind a sentence where one ends, else a comma, else a word."""
    rest = SILENT_START.sub("", text, count=1).rstrip()
    while len(rest) > MAX_CLAUSE_CHARS:
        window = rest[:MAX_CLAUSE_CHARS]
        for boundary in (r"[.!?…]['\")\]]*\s|\n", r"[,;:]\s", r"\s"):
            if ends := [match.end() for match in re.finditer(boundary, window)]:
                window = window[: ends[-1]]
                break
        rest = rest[len(window) :].lstrip()
        yield window.rstrip()
    if rest:
        yield rest


def voice_of(language: str) -> str:
    """The name of the voice of a language; of those that have none, the default."""
    return next((voice.name for voice in VOICES if voice.language == language), VOICES[0].name)
