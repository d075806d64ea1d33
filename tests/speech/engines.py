"""Small engines of speech: one that is away, one that is here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from voiceapp.engines.interfaces import Provider, Recognition, Samples, Voice
from voiceapp.errors import EngineUnavailable

SECOND = bytes(2 * 24_000)


class Away(Provider):
    """A server elsewhere that does not answer."""

    voices: Sequence[Voice] = ()
    default_voice = ""
    languages: Sequence[str] = ()

    async def recognize(self, audio: Samples, **_: Any) -> Recognition:
        raise EngineUnavailable("It is away.")

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        raise EngineUnavailable("It is away.")
        yield b""


class Here(Away):
    """Hears and says the same every time."""

    async def recognize(self, audio: Samples, *, terms: Sequence[str] = (), **_: Any) -> Recognition:
        return Recognition(" ".join(("heard here", *terms)))

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        for _ in range(3):
            yield SECOND
