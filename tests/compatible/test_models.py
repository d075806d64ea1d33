"""The list of models: every name, and what each can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.generation.conftest import Asker
from tests.models import offered
from voiceapp.catalogue.cards import EmbeddingCapabilities, ModelCard


async def test_models_are_listed_by_every_name(ask: Asker) -> None:
    listed = (await ask.get("/compatible-mode/v1/models")).json()
    assert [(model["id"], model["serves"]) for model in listed["data"]] == [
        ("obedient", "obedient"),
        ("qwen-plus", "obedient"),
        ("gpt-4o", "obedient"),
        ("plain", "plain"),
    ]
    assert (await ask.get("/compatible-mode/v1/models/gpt-4o")).json()["kind"] == "chat"
    assert (await ask.get("/compatible-mode/v1/models/some/thing")).status_code == 404


async def test_a_key_sees_the_models_it_may_use(ask: Asker, alice: Member) -> None:
    alice.row.allowed_models = ["gpt-4o"]
    await sync_to_async(alice.row.save)()
    listed = (await ask.get("/compatible-mode/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == ["obedient", "qwen-plus", "gpt-4o"]
    assert (await ask.get("/compatible-mode/v1/models/plain")).status_code == 404


@pytest.fixture
def one_of_each(settings: Settings) -> Iterator[None]:
    provider = "tests.generation.engine.Obedient"
    cards = [
        ModelCard("vectors", "embedding", provider, embedding=EmbeddingCapabilities(frozenset((512, 64)), 512, True)),
        ModelCard("ears", "asr", provider, languages=("en", "de"), runs_here=True),
        ModelCard("more-ears", "asr", provider),
        ModelCard("mouth", "tts", provider),
        ModelCard(
            "talk",
            "realtime",
            provider,
            aliases=("listen",),
            transports=("webrtc", "websocket"),
            listens_only=frozenset({"listen"}),
            input_rates_hz={"listen": 24_000},
        ),
    ]
    with offered(settings, cards):
        yield


async def test_a_chat_model_tells_what_it_can_be_asked_for(ask: Asker) -> None:
    able = (await ask.get("/compatible-mode/v1/models/gpt-4o")).json()
    assert able["capabilities"] == {"images": True, "tools": True, "response_format": True, "instructions": True}
    plain = (await ask.get("/compatible-mode/v1/models/plain")).json()
    assert plain["capabilities"] == {"images": False, "tools": False, "response_format": False, "instructions": True}


@pytest.mark.usefixtures("one_of_each")
async def test_every_kind_tells_what_concerns_it(ask: Asker) -> None:
    listed = {model["id"]: model for model in (await ask.get("/v1/models")).json()["data"]}
    assert {name: model["capabilities"] for name, model in listed.items()} == {
        "vectors": {"dimensions": [64, 512], "default_dimension": 512, "sparse": True, "instructions": False},
        "ears": {"languages": ["en", "de"], "timestamp_granularities": ["segment"]},
        "more-ears": {"timestamp_granularities": ["segment"]},
        "mouth": {},
        "talk": {"transports": ["webrtc", "websocket"], "responds": True, "input_sample_rate": 16_000},
        "listen": {"transports": ["webrtc", "websocket"], "responds": False, "input_sample_rate": 24_000},
    }
    assert [name for name, model in listed.items() if model["runs_here"]] == ["ears"]


@pytest.mark.usefixtures("one_of_each")
async def test_every_model_tells_what_leaves_this_server(ask: Asker, settings: Settings) -> None:
    async def told() -> dict[str, str]:
        return {model["id"]: model["privacy"] for model in (await ask.get("/v1/models")).json()["data"]}

    assert await told() == {
        "vectors": "words",
        "ears": "nothing",
        "more-ears": "sound",
        "mouth": "words",
        "talk": "words",
        "listen": "words",
    }
    here = [replace(card, runs_here=True) for card in settings.VOICE_MODELS]
    with offered(settings, here):
        assert set((await told()).values()) == {"nothing"}
        settings.INSPECTION_BASE_URL = "http://127.0.0.1:9"
        assert (await told())["talk"] == "words"
    stands_in = [replace(card, fallbacks=("more-ears",)) if card.name == "ears" else card for card in here]
    stands_in[2] = replace(stands_in[2], runs_here=False)
    with offered(settings, stands_in):
        assert {name: value for name, value in (await told()).items() if value == "sound"} == {
            "ears": "sound",
            "more-ears": "sound",
            "talk": "sound",
            "listen": "sound",
        }
