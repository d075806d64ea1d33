"""Model cards by name, and the one provider behind each."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from voiceapp.engines import catalogue as module
from voiceapp.engines.catalogue import Catalogue, catalogue, warm_up
from voiceapp.engines.lanes import lanes
from voiceapp.errors import EngineUnavailable, ModelNotFound


class Provider:
    """An engine that notes how it was made and what became of it."""

    def __init__(self, *, color: str = "plain", is_missing: bool = False) -> None:
        self.color = color
        self.is_missing = is_missing
        self.is_warm = False
        self.is_closed = False

    async def warm(self) -> None:
        if self.is_missing:
            raise EngineUnavailable("Weights are missing.")
        self.is_warm = True

    async def close(self) -> None:
        self.is_closed = True


def entry(name: str, kind: str = "asr", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "provider": f"{__name__}.Provider", **more}


def test_a_card_answers_to_its_name_and_its_aliases_within_its_kind() -> None:
    models = Catalogue([entry("ear", aliases=["listener"]), entry("ear", "tts")])

    assert models.get("ear", "asr") is models.get("listener", "asr")
    assert models.get("ear", "tts").kind == "tts"
    with pytest.raises(ModelNotFound, match="'listener'"):
        models.get("listener", "tts")


def test_the_first_of_a_kind_is_the_default() -> None:
    models = Catalogue([entry("a"), entry("b"), entry("c", "tts")])

    assert models.default("asr").name == "a"
    assert [card.name for card in models.names("asr")] == ["a", "b"]
    with pytest.raises(ModelNotFound):
        models.default("chat")


def test_an_endless_name_is_not_repeated_in_full() -> None:
    with pytest.raises(ModelNotFound) as refused:
        Catalogue([]).get("x" * 10_000, "realtime")
    assert len(refused.value.message) < 200


def test_a_provider_is_built_once_and_with_its_options() -> None:
    models = Catalogue([entry("a", options={"color": "blue"}), entry("b")])

    first = models.provider(models.get("a", "asr"))

    assert first.color == "blue"
    assert models.provider(models.get("a", "asr")) is first
    assert models.provider(models.get("b", "asr")) is not first
    assert len(models.providers()) == 2


@pytest.mark.parametrize(
    "entries",
    [
        [entry("a"), entry("a")],
        [entry("a", aliases=["b"]), entry("b")],
        [{"name": "a", "kind": "asr"}],
        [entry("a", "smell")],
        [entry("")],
    ],
)
def test_a_setting_that_contradicts_itself_is_refused(entries: list[dict[str, Any]]) -> None:
    with pytest.raises(ImproperlyConfigured, match="VOICE_MODELS"):
        Catalogue(entries)


def test_the_project_s_own_setting_has_all_that_a_conversation_needs() -> None:
    models = Catalogue(settings.VOICE_MODELS)

    for kind in ("realtime", "asr", "turn", "tts", "chat", "embedding"):
        assert models.default(kind).provider.startswith("voiceapp.engines.")  # type: ignore[arg-type]
    assert models.get("qwen3-omni-flash-realtime", "realtime") is models.default("realtime")


@pytest.fixture
def own_models(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    models = Catalogue(request.param)
    monkeypatch.setattr(module, "catalogue", lambda: models)
    return models


@pytest.mark.parametrize(
    "own_models",
    [[entry("a", options={"is_missing": True}), entry("b", "tts"), entry("spare", "tts")]],
    indirect=True,
)
async def test_warming_goes_on_past_missing_weights_and_leaves_spares_cold(own_models: Catalogue) -> None:
    await warm_up()

    missing, spoken = own_models.providers()
    assert isinstance(missing, Provider)
    assert isinstance(spoken, Provider)
    assert (missing.is_warm, spoken.is_warm) == (False, True)


@pytest.mark.parametrize("own_models", [[entry("a"), entry("b", "tts")]], indirect=True)
async def test_closing_ends_providers_and_lanes(own_models: Catalogue) -> None:
    built = own_models.provider(own_models.default("asr"))
    before = lanes()

    await module.close()

    assert built.is_closed
    with pytest.raises(RuntimeError, match="shutdown"):
        await before.voice.run(int)
    assert await lanes().voice.run(int) == 0


def test_the_process_has_one_catalogue() -> None:
    assert catalogue() is catalogue()
