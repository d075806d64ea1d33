"""What a socket is refused for before the handshake, beside the caller: a model that cannot serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.models import offered
from voiceapp.catalogue.cards import ModelCard
from voiceapp.http.refusals import Message
from voiceapp.realtime.sockets import api_socket

pytestmark = pytest.mark.django_db(transaction=True)


async def refusal(member: Member, model: str) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a handshake."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": "/api-ws/v1/realtime",
        "query_string": f"model={model}".encode(),
        "headers": [(b"authorization", member.authorization.encode())],
        "client": ["127.0.0.1", 1],
    }
    await api_socket(scope, receive, send)
    start, body = sent
    assert start["type"] == "websocket.http.response.start"
    return start["status"], json.loads(body["body"])


async def test_missing_weights_are_said_before_the_handshake(alice: Member, settings: Settings, tmp_path: Path) -> None:
    settings.MODELS_DIR = tmp_path

    status, body = await refusal(alice, "voice")

    assert (status, body["code"]) == (503, "ModelUnavailable")
    assert body["message"] == "The voice models are not on this server yet."


async def test_a_model_that_only_takes_calls_says_so(alice: Member, settings: Settings) -> None:
    card = ModelCard(
        "elsewhere",
        "realtime",
        "voiceapp.engines.upstream.realtime.provider.UpstreamRealtime",
        options={"base_url": "https://service.example.org", "api_key": "secret", "model": "theirs"},
        transports=("webrtc",),
        forwards_offers=True,
    )
    with offered(settings, [*settings.VOICE_MODELS, card]):
        status, body = await refusal(alice, "elsewhere")

    assert (status, "WebRTC" in body["message"]) == (400, True)
