"""Cards by name, out of the setting `VOICE_MODELS`, and the MCP servers of `MCP_SERVERS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.errors import ModelNotFound

is_agent: Callable[[str], bool] = frozenset[str]().__contains__
"""Return whether an agent has this name; set by the room of agents, which is above this one."""


class Catalogue:
    """The models of a server."""

    def __init__(self, cards: Iterable[ModelCard]) -> None:
        """Index the cards by kind and name.

        Raises:
            ImproperlyConfigured: if two cards of one kind share a name.
        """
        self._cards = tuple(cards)
        self._by_name: dict[tuple[str, str], ModelCard] = {}
        for card in self._cards:
            for name in card.names:
                if (name, card.kind) in self._by_name:
                    raise ImproperlyConfigured(f"VOICE_MODELS names the {card.kind} model '{name}' twice.")
                self._by_name[name, card.kind] = card

    def get(self, name: str, kind: ModelKind) -> ModelCard:
        """The card of a name.

        Raises:
            ModelNotFound: if no card of the kind has it.
        """
        card = self.find(name, kind)
        if card is None:
            raise ModelNotFound(f"There is no {kind} model '{name[:80]}' on this server.")
        return card

    def find(self, name: str, kind: str) -> ModelCard | None:
        """The card of that name or alias; None where this server has none."""
        return self._by_name.get((name, kind))

    def default(self, kind: ModelKind) -> ModelCard:
        """The first of its kind.

        Raises:
            ModelNotFound: if there is none.
        """
        for card in self.of_kind(kind):
            return card
        raise ModelNotFound(f"This server has no {kind} model.")

    def all(self) -> tuple[ModelCard, ...]:
        """All cards, in the order of the setting."""
        return self._cards

    def of_kind(self, kind: ModelKind) -> list[ModelCard]:
        """All cards of a kind, in the order of the setting."""
        return [card for card in self._cards if card.kind == kind]

    def of_services(self) -> list[ModelCard]:
        return [card for card in self._cards if card.service]

    def names_of(self, name: str, kind: str) -> frozenset[str]:
        """All names of the model that is called `name`; of one that this server does not know, that name alone."""
        card = self.find(name, kind)
        return frozenset({name} if card is None else card.names)

    def is_known(self, name: str) -> bool:
        """Return whether a model of any kind, or an agent, has this name or alias."""
        return self.has_card(name) or is_agent(name)

    def has_card(self, name: str) -> bool:
        """Return whether a model of any kind has this name or alias."""
        return any(name in card.names for card in self._cards)

    def runs_here(self, name: str, kind: str) -> bool:
        """Return whether this server itself runs a model; a model that is not known counts as another server's."""
        card = self.find(name, kind)
        return card is not None and card.runs_here


@cache
def catalogue() -> Catalogue:
    return Catalogue(settings.VOICE_MODELS)


def mcp_addresses() -> tuple[tuple[str, str], ...]:
    """Label and address of each MCP server that callers with a key or login may name."""
    return tuple((server.label, server.url) for server in settings.MCP_SERVERS)
