"""Models and agents that the page offers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import DatabaseError
from django.http import Http404

from voiceapp import ice
from voiceapp.agents.answering import Answering, answering
from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import VOICE
from voiceapp.catalogue.lookup import catalogue
from voiceapp.catalogue.privacy import leaves
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.errors import NotFound


async def visited_agent(user: Any, named: str) -> Answering:
    """Return the agent that a visitor's page is of; without a name, the default one.

    Raises:
        Http404: there is none of this name, or not for this visitor.
    """
    try:
        return await answering(named or VOICE, user_id=user.pk, is_guest=not user.is_authenticated)
    except NotFound as missing:
        raise Http404 from missing
    except (DatabaseError, DatabaseUnavailable):
        if named:
            raise
        return Answering(VOICE)  # the page opens all the same, and says what is in the way


def page_cards(named: str) -> list[ModelCard]:
    """The models to choose from: the agent that the page is of, else all."""
    models = catalogue()
    return [replace(models.get(VOICE, "realtime"), name=named)] if named else models.of_kind("realtime")


def described(card: ModelCard, agent: Answering, *, has_relays: bool) -> dict[str, Any]:
    shown = agent if card.name.partition("@")[0] == agent.name else Answering(card.name)
    chat, leaving = _chat(shown), leaves(card)
    return {
        "name": card.name,
        "title": shown.title or card.title,
        "transports": _transports(card, has_relays=has_relays),
        "follows_instructions": card.is_held_elsewhere or (chat is not None and chat.chat.instructions),
        "leaves": "words" if leaving == "nothing" and chat is not None and not chat.runs_here else leaving,
    }


def _transports(card: ModelCard, *, has_relays: bool) -> list[str]:
    """Transports by which a browser reaches this model now. The page connects to relays of this installation only."""
    closed = set() if has_relays and not card.forwards_offers else {"aoq"}
    if not (card.forwards_offers or ice.available()):
        closed.add("webrtc")
    return [name for name in card.transports if name not in closed]


def has_small_model(agent: Answering) -> bool:
    """Return whether the language model that replies is so small that visitors should know."""
    return (chat := _chat(agent)) is not None and chat.chat.is_small


def is_multilingual(agent: Answering) -> bool:
    """Return whether what replies knows other languages than English."""
    return (chat := _chat(agent)) is None or not chat.chat.is_english


def _chat(agent: Answering) -> ModelCard | None:
    """The chat model that replies; None on a server without one, whose conversations others hold."""
    return agent.chat or next(iter(catalogue().of_kind("chat")), None)
