"""The small language model itself, in a child process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from voiceapp.catalogue.defaults import SMALL_MODEL, SMALL_MODEL_OPTIONS
from voiceapp.engines.llama_cpp.chat import LlamaChat
from voiceapp.engines.models import weights


@pytest.fixture(scope="session")
def small_model(models: None) -> Path:
    """The file of the language model that comes with the server."""
    return weights.require(SMALL_MODEL)


def chat_of(file: Path, **options: Any) -> LlamaChat:
    """The model as a fresh installation runs it, with other `options`."""
    given = {"threads": 1, "context_tokens": 1024, "slots": 2, "file": str(file), **SMALL_MODEL_OPTIONS, **options}
    return LlamaChat(**given)


@pytest_asyncio.fixture
async def chat(small_model: Path) -> AsyncIterator[LlamaChat]:
    model = chat_of(small_model)
    await model.warm()
    yield model
    await model.close()
