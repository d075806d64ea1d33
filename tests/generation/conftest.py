"""A catalogue with one obedient chat model, and how to ask it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.generation.engine import Obedient
from tests.models import offered
from voiceapp.catalogue.cards import ChatCapabilities, ModelCard
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.providers import provider_of

TEXT = "/api/v1/services/aigc/text-generation/generation"
ABLE = ChatCapabilities(images=True, tools=True, response_format=True)
MULTIMODAL = "/api/v1/services/aigc/multimodal-generation/generation"


@pytest.fixture(autouse=True)
def _models(settings: Settings) -> Iterator[None]:
    provider = "tests.generation.engine.Obedient"
    cards = [
        ModelCard("obedient", "chat", provider, aliases=("qwen-plus", "gpt-4o"), chat=ABLE),
        ModelCard("plain", "chat", provider, options={"says_usage": False}),
    ]
    with offered(settings, cards):
        yield


@pytest.fixture
def engine() -> Obedient:
    found: Obedient = provider_of(catalogue().get("obedient", "chat"))
    return found


@pytest.fixture
def plain() -> Obedient:
    """One that can do nothing but talk."""
    found: Obedient = provider_of(catalogue().get("plain", "chat"))
    return found


class Asker:
    def __init__(self, member: Member) -> None:
        self._member = member
        self._client = AsyncClient(raise_request_exception=False)

    async def post(self, path: str, body: Any, **headers: str) -> Any:
        return await self._client.generic(
            "POST",
            path,
            json.dumps(body),
            "application/json",
            headers={"Authorization": self._member.authorization, **headers},
        )

    async def get(self, path: str) -> Any:
        return await self._client.get(path, headers={"Authorization": self._member.authorization})

    async def native(self, said: Any, path: str = TEXT, model: str = "qwen-plus", **parameters: Any) -> Any:
        body = {"model": model, "input": {"messages": [{"role": "user", "content": said}]}, "parameters": parameters}
        return await self.post(path, body)

    async def frames(self, said: Any, path: str = TEXT, model: str = "qwen-plus", **parameters: Any) -> Any:
        """The same, streamed: the response whose content is to be read."""
        body = {"model": model, "input": {"messages": [{"role": "user", "content": said}]}, "parameters": parameters}
        return await self.post(path, body, **{"X-DashScope-SSE": "enable"})


@pytest.fixture
def ask(alice: Member) -> Asker:
    return Asker(alice)


async def text_of(response: HttpResponseBase) -> str:
    return b"".join([part async for part in response]).decode()


async def bodies_of(response: HttpResponseBase) -> list[dict[str, Any]]:
    frames = (await text_of(response)).split("\n\n")
    return [json.loads(frame.partition("data:")[2]) for frame in frames if "data:{" in frame.replace("data: ", "data:")]
