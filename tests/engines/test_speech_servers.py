"""A conversation of this server's own whose speech servers do not answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from pytest_django.fixtures import Settings

from tests.models import offered
from tests.ports import free_port
from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import voice_cards
from voiceapp.catalogue.servers import ServerSettings
from voiceapp.catalogue.speech_servers import speech_cards
from voiceapp.engines.cascade import CascadeModel
from voiceapp.engines.interfaces import Call
from voiceapp.engines.models.providers import providers, troubles
from voiceapp.protocol.wire import events as ev


def cards() -> list[ModelCard]:
    """Speech by servers that are gone, with the engines here behind them, and the lightest of those."""
    gone = ServerSettings(f"http://127.0.0.1:{free_port()}/v1", "", "", timeout_s=5.0)
    here = [card for card in voice_cards() if card.name != "hibari"]
    chat = ModelCard("parrot", "chat", "tests.generation.engine.Obedient")
    return [chat, *speech_cards(gone, gone, here)]


@pytest.mark.usefixtures("models")
async def test_the_engine_here_speaks_in_place_of_a_server_that_is_gone(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    content = [{"type": "input_text", "text": "say: Hello. |How are you today?"}]
    with offered(settings, cards()):
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            stream = CascadeModel().open(Call(session_id="sess_1", model="voice"), tasks)
            await stream.receive(ev.ItemCreate(item={"type": "message", "role": "user", "content": content}))
            await stream.receive(ev.ResponseCreate())
            has_spoken = False
            async with aclosing(stream.events()) as told:
                async for event in told:
                    has_spoken = has_spoken or isinstance(event, ev.AudioDelta)
                    if isinstance(event, ev.ResponseDone):
                        break
            stream.close()
        assert ["cannot be reached" in error.message for error in troubles()] == [True]
        for provider in providers().built():
            await provider.close()

    assert has_spoken
    (line,) = [line for line in caplog.messages if line.startswith("session sess_1")]
    assert line.startswith("session sess_1: speech goes on with the embedded engine")
