"""Other models than a fresh installation's, for the length of a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pytest_django.fixtures import Settings

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.providers import providers
from voiceapp.engines.upstream.http.client import services

LLAMA = ModelCard("llama", "chat", "voiceapp.engines.openai.chat.OpenAIChat", options={"base_url": "http://[::1]:9"})
"""A chat model of another server."""
UPSTREAM = ModelCard(
    "upstream",
    "realtime",
    "voiceapp.engines.upstream.realtime.provider.UpstreamRealtime",
    title="Theirs",
    options={"base_url": "https://voice.example.org", "api_key": "their-secret", "model": "theirs"},
    transports=("webrtc",),
    forwards_offers=True,
)
"""Another service, to which browsers talk by WebRTC."""


@contextmanager
def offered(settings: Settings, cards: Iterable[ModelCard]) -> Iterator[None]:
    """The server has these models, and providers of its own for them."""
    settings.VOICE_MODELS = list(cards)
    forget()
    try:
        yield
    finally:
        forget()


def forget() -> None:
    """Build catalogue and providers anew when they are next asked for."""
    catalogue.cache_clear()
    providers.cache_clear()
    services.cache_clear()
