"""A caller of the retrieval operations, by HTTP, with the real engines behind them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest_asyncio
from django.http import HttpResponse
from django.test import AsyncClient

from tests.conftest import Member
from tests.models import forget
from voiceapp.engines.models import providers

EMBED = "/api/v1/services/embeddings/text-embedding/text-embedding"
RERANK = "/api/v1/services/rerank/text-rerank/text-rerank"
FLAT = "/compatible-api/v1/reranks"
COMPATIBLE = "/compatible-mode/v1/embeddings"


@dataclass
class Program:
    """Somebody's program, with their key."""

    member: Member

    async def post(self, path: str, body: Any, **headers: str) -> HttpResponse:
        return await AsyncClient().generic(
            "POST",
            path,
            json.dumps(body),
            content_type="application/json",
            headers={"Authorization": self.member.authorization, **headers},
        )

    async def ok(self, path: str, body: Any) -> dict[str, Any]:
        answer = await self.post(path, body)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        assert found.get("request_id", answer["X-Request-ID"]) == answer["X-Request-ID"]
        return found

    async def refusal(self, path: str, body: Any, status: int, **headers: str) -> dict[str, Any]:
        answer = await self.post(path, body, **headers)
        assert answer.status_code == status, answer.content
        found: dict[str, Any] = answer.json()
        return found


@pytest_asyncio.fixture
async def program(models: None, alice: Member) -> AsyncIterator[Program]:
    forget()
    yield Program(alice)
    await providers.close()
    forget()
