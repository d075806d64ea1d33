"""The provider objects behind the cards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.models import offered
from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.lookup import catalogue
from voiceapp.catalogue.servers import UpstreamSettings
from voiceapp.catalogue.services import with_services
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models import providers as module
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.models.providers import (
    CONVERSATION,
    MOST_OWN,
    Providers,
    in_use,
    provider_of,
    providers,
    recognized_languages,
    service_states,
    troubles,
    unavailable,
    warm_up,
)
from voiceapp.engines.models.weights import WeightsMissing
from voiceapp.errors import EngineError, EngineUnavailable


class Noting(Provider):
    """An engine that notes how it was made and what became of it."""

    def __init__(self, *, color: str = "plain", is_missing: bool = False) -> None:
        self.color = color
        self.is_missing = is_missing
        self.is_warm = False
        self.is_closed = False

    def check(self) -> None:
        if self.is_missing:
            raise EngineUnavailable("Weights are missing.")

    async def warm(self) -> None:
        self.check()
        self.is_warm = True

    async def close(self) -> None:
        self.is_closed = True


def card(name: str, kind: ModelKind = "asr", **options: Any) -> ModelCard:
    return ModelCard(name, kind, f"{__name__}.Noting", options=options)


class Elsewhere(Noting):
    @property
    def trouble(self) -> EngineError:
        return EngineUnavailable("The speech server cannot be reached.")


def test_an_engine_here_stands_behind_one_elsewhere(only_models: Callable[..., None]) -> None:
    here = replace(card("here"), runs_here=True)
    elsewhere = replace(card("elsewhere"), provider=f"{__name__}.Elsewhere")
    only_models(elsewhere, card("spare"), here, replace(card("tts", "tts"), runs_here=True))
    assert [each.name for each in in_use("asr")] == ["elsewhere", "here"]
    assert [each.name for each in in_use("tts")] == ["tts"]
    assert [error.message for error in troubles()] == ["The speech server cannot be reached."]


def test_the_languages_of_a_conversation_are_those_of_all_its_recognizers(only_models: Callable[..., None]) -> None:
    here = replace(card("here"), runs_here=True, languages=("en",))
    only_models(replace(card("elsewhere"), languages=("de", "en")), here)
    assert recognized_languages() == ("de", "en")
    only_models(card("elsewhere"), here)
    assert recognized_languages() == ()


def test_a_provider_is_built_once_and_with_its_options() -> None:
    built = Providers()
    first = built.get(card("a", color="blue"))

    assert first.color == "blue"
    assert built.get(card("a", color="blue")) is first
    assert built.get(card("a", color="red")).color == "red"
    assert built.get(card("b")) is not first
    assert len(built.built()) == 3


async def test_models_of_versions_that_are_published_without_end_are_let_go(
    only_models: Callable[..., None], settings: Settings
) -> None:
    only_models(card("server", "chat"))
    settings.SESSION_LIFETIME_S = 0
    built = Providers()
    kept, used, first = (built.get(card(name, "chat")) for name in ("server", "used", "first"))
    for number in range(3 * MOST_OWN):
        assert built.get(card("version", "chat", color=str(number))).color == str(number)
        assert built.get(card("used", "chat")) is used
    assert len(built.built()) == MOST_OWN + 1
    assert built.get(card("server", "chat")) is kept
    async with asyncio.timeout(5):
        await asyncio.gather(*built._leaving)
    assert [first.is_closed, used.is_closed, kept.is_closed] == [True, False, False]


def test_a_stand_in_that_this_server_no_longer_has_is_left_out(only_models: Callable[..., None]) -> None:
    only_models(card("spare", "chat"))
    chain = Providers().links(replace(card("a", "chat"), fallbacks=("gone", "spare")))
    assert [link.card.name for link in chain] == ["a", "spare"]


async def test_warming_goes_on_past_missing_weights_and_leaves_spares_cold(only_models: Callable[..., None]) -> None:
    only_models(card("a", is_missing=True), card("b", "tts"), card("spare", "tts"))

    await warm_up()

    missing, spoken = providers().built()
    assert isinstance(missing, Noting)
    assert isinstance(spoken, Noting)
    assert (missing.is_warm, spoken.is_warm) == (False, True)


async def test_closing_ends_providers_and_lanes(only_models: Callable[..., None]) -> None:
    only_models(card("a"), card("b", "tts"))
    built = provider_of(catalogue().default("asr"))
    before = lanes()

    await module.close()

    assert built.is_closed
    with pytest.raises(RuntimeError, match="shutdown"):
        await before.voice.run(int)
    assert await lanes().voice.run(int) == 0


def test_the_first_models_of_a_conversation_are_asked_whether_they_can_serve(only_models: Callable[..., None]) -> None:
    only_models(card("a"), card("b", "tts", is_missing=True), card("spare", "asr", is_missing=True))

    assert [error.message for error in unavailable()] == ["Weights are missing."]


def test_weights_are_not_needed_for_what_is_served_elsewhere(
    only_models: Callable[..., None], settings: Settings, tmp_path: Path
) -> None:
    settings.MODELS_DIR = tmp_path
    assert [type(error) for error in unavailable()] == [WeightsMissing]

    only_models(*(card(f"remote {kind}", kind) for kind in CONVERSATION))

    assert unavailable() == []


def test_services_are_known_by_their_settings_too(settings: Settings) -> None:
    far = UpstreamSettings("http://127.0.0.1:9", "sk-canary-0123456789abcdef", "far-realtime", alias="acme")
    settings.UPSTREAMS = (UpstreamSettings("", "", ""), far)
    with offered(settings, with_services(settings.VOICE_MODELS, [replace(far, chat_models=["plus"])])):
        (state,) = service_states()
    assert (state.name, state.circuit, state.is_reachable) == ("acme", "closed", None)
