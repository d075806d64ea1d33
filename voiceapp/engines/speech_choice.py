"""Which speech engine serves one conversation: the one that knows the language, and the embedded one where it fails."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from voiceapp.engines.interfaces import Recognition, Recognizer, Samples, Synthesizer, Voice
from voiceapp.engines.languages import is_one_of
from voiceapp.errors import EngineError, EngineUnavailable

logger = logging.getLogger(__name__)


class Fallback:
    """Engines in the order in which they are asked; one that failed is not asked again in this conversation."""

    def __init__(self, session_id: str, what: str) -> None:
        self._session_id = session_id
        self._what = what
        self.failed: set[int] = set()

    def note(self, place: int, error: EngineError) -> None:
        """Engine number `place` failed: say so once, and go on without it."""
        if place not in self.failed:
            self.failed.add(place)
            logger.warning(
                "session %s: %s goes on with the embedded engine: %s", self._session_id, self._what, error.for_operators
            )


class ChosenRecognizer:
    """A `Recognizer` for one conversation."""

    def __init__(self, engines: Sequence[Recognizer], *, session_id: str) -> None:
        """`engines` in the order in which they are asked; the last one runs here."""
        self._engines = tuple(engines)
        self._fallback = Fallback(session_id, "recognition")

    @property
    def languages(self) -> Sequence[str]:
        """Of all engines; empty where one of them knows any."""
        if not all(engine.languages for engine in self._engines):
            return ()
        return tuple(dict.fromkeys(code for engine in self._engines for code in engine.languages))

    @property
    def reads_early(self) -> bool:
        """See `Recognizer`: not where another engine than the embedded one hears the turns."""
        return len(self._engines) == 1

    async def recognize(self, audio: Samples, *, language: str | None = None, urgent: bool = True) -> Recognition:
        """See `Recognizer`. Words so far are read by the embedded engine where it knows the language: they come often,
        and a server elsewhere may cost money."""
        last = len(self._engines) - 1
        able = [place for place, engine in enumerate(self._engines) if _knows(engine, language)]
        asked = [place for place in able if place not in self._fallback.failed]
        if not urgent:
            asked = [place for place in asked if place == last]
        if not asked and able and not urgent:
            raise EngineUnavailable("A partial transcript was left out: no engine here knows the language.")
        asked = asked or able[-1:] or [last]  # which refuses in its own words
        for place in asked[:-1]:
            try:
                return await self._engines[place].recognize(audio, language=language, urgent=urgent)
            except EngineError as error:
                self._fallback.note(place, error)
        return await self._engines[asked[-1]].recognize(audio, language=language, urgent=urgent)


class ChosenSynthesizer:
    """A `Synthesizer` for one conversation."""

    def __init__(self, engines: Sequence[Synthesizer], *, session_id: str) -> None:
        """`engines` in the order in which they are asked; the last one runs here."""
        self._engines = tuple(engines)
        self._fallback = Fallback(session_id, "speech")

    @property
    def voices(self) -> Sequence[Voice]:
        """Of all engines, each name once."""
        return tuple({voice.name: voice for engine in reversed(self._engines) for voice in engine.voices}.values())

    @property
    def default_voice(self) -> str:
        return self._engines[0].default_voice or self._engines[-1].default_voice

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        """See `Synthesizer`. The engine that has the voice speaks, else the first; the last where that fails, from the
        beginning of the text."""
        place = next(
            (place for place, engine in enumerate(self._engines) if any(voice == each.name for each in engine.voices)),
            0,
        )
        last = len(self._engines) - 1
        if place != last and place not in self._fallback.failed:
            engine = self._engines[place]
            try:
                async with aclosing(engine.speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate)) as sound:
                    async for pcm in sound:
                        yield pcm
            except EngineError as error:
                self._fallback.note(place, error)
            else:
                return
        async with aclosing(
            self._engines[last].speak(text, voice=voice, sample_rate_hz=sample_rate_hz, rate=rate)
        ) as sound:
            async for pcm in sound:
                yield pcm


def _knows(engine: Recognizer, language: str | None) -> bool:
    return not language or not engine.languages or is_one_of(language, engine.languages)
