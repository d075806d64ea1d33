"""Model cards by name."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.lookup import Catalogue
from voiceapp.errors import ModelNotFound


def card(name: str, kind: ModelKind = "asr", *aliases: str) -> ModelCard:
    return ModelCard(name, kind, "package.Provider", aliases=aliases)


def test_a_card_is_found_by_its_name_and_its_aliases_within_its_kind() -> None:
    models = Catalogue([card("ear", "asr", "listener"), card("ear", "tts")])

    assert models.get("ear", "asr") is models.get("listener", "asr")
    assert models.get("ear", "tts").kind == "tts"
    with pytest.raises(ModelNotFound, match="'listener'"):
        models.get("listener", "tts")


def test_the_first_of_a_kind_is_the_default() -> None:
    models = Catalogue([card("a"), card("b"), card("c", "tts")])

    assert models.default("asr").name == "a"
    assert [one.name for one in models.of_kind("asr")] == ["a", "b"]
    with pytest.raises(ModelNotFound):
        models.default("chat")


def test_an_endless_name_is_not_repeated_in_full() -> None:
    with pytest.raises(ModelNotFound) as refused:
        Catalogue([]).get("x" * 10_000, "realtime")
    assert len(refused.value.message) < 200


@pytest.mark.parametrize("cards", [[card("a"), card("a")], [card("a", "asr", "b"), card("b")]])
def test_two_models_of_a_kind_cannot_share_a_name(cards: list[ModelCard]) -> None:
    with pytest.raises(ImproperlyConfigured, match="VOICE_MODELS"):
        Catalogue(cards)


@pytest.mark.parametrize(("name", "provider"), [("", "package.Provider"), ("a", "")])
def test_a_card_needs_a_name_and_a_provider(name: str, provider: str) -> None:
    with pytest.raises(ValueError, match="name and a provider"):
        ModelCard(name, "asr", provider)


def test_it_knows_all_names_of_a_model_and_what_it_costs() -> None:
    models = Catalogue(
        [ModelCard("inside", "rerank", "x", aliases=("own",), runs_here=True), card("outside", "rerank")]
    )

    assert models.names_of("own", "rerank") == {"inside", "own"}
    assert models.names_of("unknown", "rerank") == {"unknown"}
    assert (models.runs_here("own", "rerank"), models.runs_here("outside", "rerank")) == (True, False)
    assert not models.runs_here("unknown", "rerank")
    assert (models.has_card("own"), models.has_card("unknown")) == (True, False)
