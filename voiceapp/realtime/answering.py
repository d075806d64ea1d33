"""Finding who answers in a session: from the model's name that a caller gives to a card, an agent and its terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation.trans_real import parse_accept_lang_header

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.seats import AgentSeats
from voiceapp.agents.answering import Answering, answering, read_prompt
from voiceapp.agents.preamble import PREAMBLE, today
from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.defaults import VOICE
from voiceapp.catalogue.languages import ENGLISH
from voiceapp.catalogue.lookup import catalogue, mcp_addresses
from voiceapp.engines.interfaces import Briefing
from voiceapp.engines.models.providers import provider_of
from voiceapp.errors import ModelNotFound
from voiceapp.formats import language_code
from voiceapp.protocol.configuration import SessionConfig, configured
from voiceapp.protocol.openai_realtime.settings import REALTIME, TRANSCRIPTION, session_to
from voiceapp.realtime.models import session_identifier

MOST_LANGUAGES = 16
"""Languages of a caller that count."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """A model and, for our own conversation, the agent that answers in it."""

    named: str
    """Name that keys may be held to: the agent's, or the one that the caller gave."""
    card: ModelCard
    agent: Answering | None = None

    @property
    def seats(self) -> AgentSeats | None:
        """Seats of the agent, if it has a limit of its own."""
        agent = self.agent
        return AgentSeats(agent.name, agent.callers) if agent and agent.callers else None

    def lasts_s(self, most_s: float) -> float:
        """Return the longest duration of a session, where a seat may be held for `most_s`."""
        return min(most_s, (self.agent and self.agent.session_s) or most_s)

    def terms(self, time_zone: str) -> dict[str, Any]:
        """Return what the agent adds to a `Call`."""
        if (agent := self.agent) is None:
            return {}
        return {
            "chat": agent.chat,
            "briefing": Briefing(PREAMBLE, agent.instructions, today(time_zone, timezone.now())),
            "first_words": agent.first_words,
            "pace": agent.pace,
            "usual": agent.opening,
            "fixed": agent.fixed,
            "tools": agent.tools,
        }

    def described(self, model: str, opening: dict[str, Any], *, listens_only: bool) -> dict[str, Any]:
        """Return the settings that a session begins with, in OpenAI's words."""
        usual, fixed = (self.agent.opening, self.agent.fixed) if self.agent else ({}, frozenset[str]())
        voice = provider_of(self.card).default_voice
        config = SessionConfig(model=model or self.card.name, voice=voice, mcp_servers=mcp_addresses())
        shown = {"id": session_identifier(), **configured(config, usual, opening, fixed=fixed).to_wire()}
        return session_to(shown, TRANSCRIPTION if listens_only else REALTIME)


async def who_answers(
    caller: Caller, kind: ModelKind, model: str, variables: Mapping[str, str] | None = None
) -> Answerer:
    """Find the card of a model or agent; without a name, the first of the kind.

    Raises:
        ModelNotFound: no model of the kind, and no agent, has this name.
    """
    model = model or catalogue().default(kind).name
    card = catalogue().find(model, kind)
    if kind != "realtime" or (card is not None and card.name != VOICE):
        return Answerer(model, catalogue().get(model, kind))
    try:
        agent = await answering(
            VOICE if card else model, user_id=caller.user_id, is_guest=caller.is_guest, variables=variables
        )
    except ModelNotFound:
        raise ModelNotFound(f"There is no realtime model '{model[:80]}' on this server.") from None
    return Answerer(model if card else agent.name, catalogue().get(VOICE, "realtime"), agent)


async def who_is_prompted(caller: Caller, prompt: object) -> tuple[str, Answerer, Answering]:
    """Find the agent that a `prompt` names; the first is how it names it.

    Raises:
        InvalidParameter: if the prompt cannot be read.
        ModelNotFound: if it names no agent.
    """
    named, variables = read_prompt(prompt, "session.prompt")
    found = await who_answers(caller, "realtime", named, variables)
    if found.agent is None:
        raise ModelNotFound(f"There is no agent '{named[:80]}' on this server.")
    return named, found, found.agent


def languages_of(header: str) -> tuple[str, ...]:
    """The languages that a header names, and English; empty where it accepts any, or cannot be read."""
    tags = [tag for tag, quality in parse_accept_lang_header(header) if quality]
    if not tags or "*" in tags:
        return ()
    return tuple(dict.fromkeys([*(language_code(tag) for tag in tags[:MOST_LANGUAGES]), ENGLISH]))
