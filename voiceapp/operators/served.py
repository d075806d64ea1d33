"""Models and voices of this server with their states, for the front page of the operators' site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.providers import in_use, provider_of, service_states
from voiceapp.engines.models.service_states import ServiceState
from voiceapp.errors import EngineError


@dataclass(frozen=True, slots=True)
class Served:
    """A model."""

    kind: str
    name: str
    state: str
    is_in_order: bool
    voices: tuple[str, ...] = ()
    """Names of voices, of the model that conversations speak with."""


def served() -> list[Served]:
    """Return all models, kind by kind."""
    services = {state.name: state for state in service_states()}
    kinds = dict.fromkeys(card.kind for card in catalogue().all())
    return [_of(card, services) for kind in kinds for card in catalogue().of_kind(kind)]


def _of(card: ModelCard, services: Mapping[str, ServiceState]) -> Served:
    name = card.title or card.name
    if (service := services.get(card.service)) is not None:
        return Served(card.kind, name, f"at {service.name}, {service.for_operators}", service.trouble is None)
    if card not in in_use(card.kind):
        return Served(card.kind, name, "here" if card.runs_here else "at another server", True)
    provider = provider_of(card)
    voices = tuple(voice.title for voice in provider.voices) if card.kind == "tts" else ()
    try:
        provider.check()
    except EngineError as error:
        return Served(card.kind, name, error.for_operators, False, voices)
    trouble = provider.trouble
    return Served(card.kind, name, trouble.for_operators if trouble else "in use", trouble is None, voices)
