"""The models of services with the same interface, beside those of this server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import CHAT_ALIASES, chat_cards, retrieval_cards, voice_cards
from voiceapp.catalogue.lookup import Catalogue
from voiceapp.catalogue.servers import ServerSettings, UpstreamSettings
from voiceapp.catalogue.services import talks_with, upstream_cards, with_fallbacks, with_services, without_embedded
from voiceapp.settings.upstream import checked

KEY = "sk-canary-0123456789abcdef"
NONE = ServerSettings("", "", "")
OWN = [
    *chat_cards(NONE, sees_images=False, local=None, engine="both"),
    *voice_cards(),
    *retrieval_cards(NONE, NONE, rerank_shape="documents"),
]


def acme(**more: Any) -> UpstreamSettings:
    names = {"alias": "acme", "settings": "UPSTREAM_ACME"}
    return UpstreamSettings("http://127.0.0.1:9", KEY, more.pop("model", ""), **{**names, **more})


def models(**more: Any) -> Catalogue:
    return Catalogue(with_services(OWN, [acme(**more)]))


def test_a_model_has_our_name_here_and_theirs_there() -> None:
    card = models(chat_models=["plus:qwen-plus"]).get("plus", "chat")
    assert (card.options["model"], card.service, card.origin) == ("qwen-plus", "acme", "acme/plus")
    assert not card.runs_here


def test_names_of_a_service_come_first() -> None:
    found = models(chat_models=["gpt-4o"], embedding_models=["text-embedding-v4"], rerank_models=["gte-rerank"])
    assert found.get("gpt-4o", "chat").service == "acme"
    assert "gpt-4o" not in found.default("chat").aliases
    assert found.get("text-embedding-v4", "embedding").service == "acme"
    assert found.get("embedded-text-embedding-v4", "embedding").runs_here
    assert found.get("gte-rerank", "rerank").service == "acme"
    assert found.get("qwen3-rerank", "rerank").runs_here


def test_without_models_of_its_own_a_server_has_the_names_of_clients_for_those_of_others() -> None:
    found = Catalogue(without_embedded(with_services(OWN, [acme(model="theirs", chat_models=["plus"])])))
    assert {card.service for card in found.all()} == {"acme"}
    realtime = found.get("voice", "realtime")
    assert realtime == found.get("gpt-realtime", "realtime") == found.get("theirs", "realtime")
    assert (realtime.input_rate_of("voice"), realtime.input_rate_of("gpt-realtime")) == (16_000, 24_000)
    assert {name for card in OWN for name in card.listens_only}.isdisjoint(realtime.names)
    assert found.get(CHAT_ALIASES[0], "chat").name == "plus"


def test_an_embedding_model_that_is_known_has_its_lengths_and_another_has_any() -> None:
    found = models(embedding_models=["v4:text-embedding-v4", "bge"])
    here, there = found.get("text-embedding-v4", "embedding"), found.get("v4", "embedding")
    assert there.embedding.dimensions == here.embedding.dimensions
    assert there.embedding.has_sparse
    assert found.get("bge", "embedding").embedding.dimensions is None


def test_a_service_without_a_realtime_model_offers_none_beside_others() -> None:
    assert [card.name for card in models(chat_models=["plus"]).of_kind("realtime")] == ["voice"]
    assert [card.name for card in models().of_kind("realtime")] == ["voice", "acme"]


def test_conversations_can_use_a_chat_model_of_a_service() -> None:
    found = Catalogue(talks_with(with_services(OWN, [acme(chat_models=["plus"])]), "plus"))
    assert found.default("chat").name == "plus"
    assert all(found.get(name, "chat").name == "plus" for name in CHAT_ALIASES)
    with pytest.raises(ImproperlyConfigured, match="CHAT_MODEL"):
        talks_with(OWN, "plus")


def test_fallbacks_are_chains_of_models_of_one_kind() -> None:
    cards = with_services(OWN, [acme(chat_models=["plus"], rerank_models=["plus"])])
    found = Catalogue(with_fallbacks(cards, ["plus > qwen-plus"]))
    assert found.get("plus", "chat").fallbacks == ("embedded-retrieval",)
    assert found.get("plus", "rerank").fallbacks == ()


def test_a_chain_of_conversations_ends_with_the_model_of_this_server() -> None:
    cards = with_services(OWN, [acme(), acme(alias="two"), acme(alias="direct", is_direct=True)])
    found = Catalogue(with_fallbacks(cards, ["acme>two", "two>voice"]))
    assert found.get("acme", "realtime").fallbacks == ("two",)
    assert found.get("acme", "realtime").forwards_events
    assert found.get("two", "realtime").fallbacks == ("voice",)
    assert not found.get("two", "realtime").forwards_events, "the model here would be sent events unread"
    for chain in ("voice>acme", "acme>voice>two", "acme>direct"):
        with pytest.raises(ImproperlyConfigured, match="MODEL_FALLBACKS"):
            with_fallbacks(cards, [chain])


@pytest.mark.parametrize("chain", ["plus", "plus>nobody", "plus>text-embedding-v4", "plus>plus", "voice>acme", ""])
def test_other_chains_are_refused(chain: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MODEL_FALLBACKS"):
        with_fallbacks(with_services(OWN, [acme(chat_models=["plus"])]), [chain])


def test_the_key_is_in_no_text_about_a_model() -> None:
    service = acme(chat_models=["plus"], image_models=["paint"])
    cards: list[ModelCard] = with_services(OWN, [service])
    assert KEY not in repr(cards) + repr(service)


_CARDS = """
import json, django
django.setup()
from voiceapp.catalogue.lookup import catalogue
cards = [card for card in catalogue()._cards if card.service]
print(json.dumps({card.name: [card.kind, card.service, dict(card.options), card.fallbacks] for card in cards}))
"""


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "DEBUG": "1", "DJANGO_SETTINGS_MODULE": "voiceapp.settings", **variables}


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment(**variables), capture_output=True, text=True, timeout=60
    )


def test_several_services_have_settings_of_their_own() -> None:
    done = run(
        _CARDS,
        UPSTREAM_BASE_URL="https://voice.example.org",
        UPSTREAM_API_KEY="sk-one",
        UPSTREAM_CHAT_MODELS="plus:qwen-plus",
        UPSTREAM_SERVICES="acme",
        UPSTREAM_ACME_BASE_URL="https://api.acme.example",
        UPSTREAM_ACME_API_KEY="sk-two",
        UPSTREAM_ACME_MEDIA="direct",
        UPSTREAM_ACME_CHAT_MODELS="plus-acme:qwen-plus, max",
        UPSTREAM_ACME_RERANK_MODELS="ranker",
        UPSTREAM_ACME_WORKSPACE="ws-1",
        MODEL_FALLBACKS="plus>plus-acme",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: card[:2] for name, card in found.items()} == {
        "plus": ["chat", "upstream"],
        "plus-acme": ["chat", "acme"],
        "max": ["chat", "acme"],
        "ranker": ["rerank", "acme"],
    }
    assert found["plus"][3] == ["plus-acme"]
    assert found["plus"][2]["api_key"] == "sk-one"
    assert found["plus-acme"][2] == {
        "base_url": "https://api.acme.example",
        "api_key": "sk-two",
        "model": "qwen-plus",
        "timeout_s": 60.0,
        "service": "acme",
        "settings": "UPSTREAM_ACME",
        "vendor": "DashScope",
        "workspace": "ws-1",
    }


def test_a_service_without_an_address_is_named_at_the_start() -> None:
    done = run(_CARDS, UPSTREAM_SERVICES="acme", UPSTREAM_ACME_API_KEY=KEY)
    assert done.returncode != 0
    assert "set UPSTREAM_ACME_BASE_URL too" in done.stderr
    assert KEY not in done.stderr


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"dialect": "klingon"}, "UPSTREAM_DIALECT is native or openai, not 'klingon'"),
        ({"dialect": "openai", "chat_models": ["plus"]}, "has a realtime model only"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(about: dict[str, Any], said: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=re.escape(said)):
        checked(UpstreamSettings("https://api.example.org/v1", KEY, "gpt-realtime", **about))


def test_a_direct_service_of_openais_family_is_passed_the_offers_of_its_own_dialect() -> None:
    (card,) = upstream_cards(checked(acme(dialect="openai", is_direct=True)))
    assert (card.forwards_offers, card.forwards_calls, card.transports[0]) == (False, True, "aoq")


def test_a_service_of_openais_family_has_a_card_whose_sessions_are_translated() -> None:
    service = UpstreamSettings("https://api.example.org/v1", KEY, "gpt-realtime", dialect="openai")
    (card,) = upstream_cards(checked(service))
    assert (card.forwards_events, card.is_held_elsewhere) == (False, True)
    assert card.options["dialect"] == "openai"
    assert service.address["models_path"] == "/models"
