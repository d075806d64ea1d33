"""The engines themselves, with their real weights."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.espeak.voice import Espeak


@pytest.fixture
def moonshine(models: None) -> Moonshine:
    return Moonshine()


@pytest_asyncio.fixture
async def espeak() -> AsyncIterator[Espeak]:
    synthesizer = Espeak()
    yield synthesizer
    await synthesizer.close()
