"""The models of a fresh installation, and of one whose operator named servers."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.defaults import (
    CHAT_ALIASES,
    REALTIME_ALIASES,
    chat_cards,
    image_cards,
    retrieval_cards,
    voice_cards,
)
from voiceapp.catalogue.lookup import Catalogue
from voiceapp.catalogue.servers import ServerSettings, UpstreamSettings
from voiceapp.catalogue.services import upstream_cards, with_services
from voiceapp.catalogue.speech_servers import speech_cards
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.models.providers import Providers

NONE = ServerSettings("", "", "")
SERVER = ServerSettings("http://127.0.0.1:9/v1", "", "theirs", timeout_s=5.0)
WYOMING = ServerSettings("tcp://127.0.0.1:9", "", "", timeout_s=5.0)
SERVICE = UpstreamSettings(
    "http://127.0.0.1:9",
    "",
    "far",
    image_models=["paint"],
    video_models=["film"],
    chat_models=["plus:their-plus"],
    embedding_models=["text-embedding-v3"],
    rerank_models=["there"],
)


def fresh() -> list[ModelCard]:
    own = [
        *chat_cards(NONE, sees_images=False, local=None, engine="both"),
        *voice_cards(),
        *retrieval_cards(NONE, NONE, rerank_shape="documents"),
        *image_cards(NONE),
    ]
    return with_services(own, [UpstreamSettings("", "", "")])


def served_elsewhere() -> list[ModelCard]:
    own = [
        *chat_cards(SERVER, sees_images=True, local=None, engine="both"),
        *speech_cards(SERVER, WYOMING, voice_cards(), languages=["de"]),
        *retrieval_cards(SERVER, SERVER, rerank_shape="documents"),
        *image_cards(SERVER),
    ]
    return with_services(own, [SERVICE])


@pytest.mark.parametrize("card", [*fresh(), *served_elsewhere()], ids=lambda card: f"{card.kind} {card.name}")
def test_every_card_has_a_provider_that_can_be_built(card: ModelCard) -> None:
    assert isinstance(Providers().get(card), Provider)


def test_speech_servers_come_before_the_engines_here_under_the_names_that_clients_know() -> None:
    models = Catalogue(served_elsewhere())
    recognizer, speaker = models.default("asr"), models.default("tts")
    assert (recognizer.name, recognizer.languages, recognizer.runs_here) == ("theirs", ("de",), False)
    assert models.get("whisper-1", "asr") is recognizer
    assert recognizer.provider.endswith("openai.transcription.OpenAIRecognizer")
    assert models.get("tts-1", "tts") is speaker
    assert speaker.provider.endswith("wyoming.synthesizer.WyomingSpeech")
    assert [card.runs_here for card in models.of_kind("asr")] == [False, True]


def test_a_speech_server_may_have_a_name_that_clients_know() -> None:
    server = ServerSettings("http://127.0.0.1:9/v1", "", "whisper-1")
    models = Catalogue(speech_cards(server, NONE, voice_cards()))
    assert models.get("whisper-1", "asr") is models.default("asr")


def test_a_fresh_installation_has_all_that_a_conversation_needs_and_calls_no_server() -> None:
    models = Catalogue(fresh())

    here = {"realtime", "vad", "turn", "asr", "chat", "tts", "embedding", "rerank"}
    assert {kind for kind in get_args(ModelKind) if models.of_kind(kind)} == here
    assert all(card.runs_here for card in fresh())
    assert all(models.get(name, "realtime").name == "voice" for name in REALTIME_ALIASES)
    assert all(models.get(name, "chat").name == "embedded-retrieval" for name in CHAT_ALIASES)


def test_names_of_realtime_models_are_those_of_realtime_models_only() -> None:
    """A listed name works where its clients use it; models of synthesis read text aloud there."""
    named = {name: card.kind for card in fresh() for name in card.names if name.endswith("-realtime")}
    assert {kind for name, kind in named.items() if "-tts-" not in name} == {"realtime"}, named
    assert {kind for name, kind in named.items() if "-tts-" in name} == {"tts"}, named


def test_what_a_server_does_is_not_counted_as_done_here() -> None:
    models = Catalogue(served_elsewhere())

    for name, kind in (("theirs", "chat"), ("text-embedding-v4", "embedding"), ("qwen3-rerank", "rerank")):
        assert not models.runs_here(name, kind)
    assert models.runs_here("voice", "realtime")


def test_capabilities_stand_on_the_card() -> None:
    inside, outside = Catalogue(fresh()), Catalogue(served_elsewhere())

    assert (inside.default("chat").chat.tools, outside.default("chat").chat.tools) == (False, True)
    assert outside.default("chat").chat.images
    embedding, remote = (models.get("text-embedding-v4", "embedding").embedding for models in (inside, outside))
    assert (embedding.default_dimension, embedding.has_sparse, embedding.has_instruct) == (1024, True, True)
    # Without a wish, a server gives vectors of its model's own length.
    assert (remote.default_dimension, remote.has_sparse, remote.has_instruct) == (None, False, True)
    assert embedding.dimensions == remote.dimensions
    assert inside.default("asr").languages == ("en",)
    far = outside.get("far", "realtime")
    assert far.transports == ("aoq", "webrtc", "websocket")
    assert (far.forwards_events, far.forwards_offers) == (True, False)
    direct = upstream_cards(replace(SERVICE, is_direct=True))[0]
    assert (direct.transports[0], direct.forwards_offers) == ("webrtc", True)


def test_the_services_own_names_stay_the_services() -> None:
    service = UpstreamSettings("http://127.0.0.1:9", "", "gpt-realtime", image_models=["dall-e-3"])
    models = Catalogue(with_services([*voice_cards(), *image_cards(SERVER)], [service]))

    assert models.get("gpt-realtime", "realtime").name == "upstream"
    assert models.get("dall-e-3", "image").name == "dall-e-3"
    assert models.get("gpt-image-1", "image").name == "theirs"


def test_names_of_libraries_that_send_24_khz_mean_24_khz() -> None:
    [card] = [card for card in fresh() if card.kind == "realtime"]
    assert {name: card.input_rate_of(name) for name in card.names} == {
        name: 24_000 if name.startswith("gpt-") else 16_000 for name in card.names
    }
