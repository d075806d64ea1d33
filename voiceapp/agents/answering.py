"""The agent that answers a caller: the one place where it becomes the configuration of a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model

from voiceapp.agents.documents import folder_of
from voiceapp.agents.models import Agent, AgentVersion, Composition, Mind
from voiceapp.agents.preamble import filled
from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import VOICE, LocalModelSettings, chat_cards, chat_model_file, of_agent
from voiceapp.catalogue.lookup import catalogue
from voiceapp.catalogue.servers import ServerSettings
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import ModelNotFound
from voiceapp.protocol.wire.values import read_metadata, read_object, read_text

DRAFT = "draft"
"""In the place of a version's number, for people who may change agents."""
NAMED = re.compile(rf"([a-z0-9][a-z0-9_-]*)(?:@({DRAFT}|[0-9]{{1,8}}))?")
"""An agent, and a version of it."""
DECIDING = ("CHAT_BASE_URL", "CHAT_MODEL_FILE", "CHAT_MODEL", "CHAT_ENGINE")
"""Settings that say what replies at this server; the default agent then has no say in it."""


@dataclass(frozen=True, slots=True)
class Answering:
    """An agent as a conversation has it from its beginning to its end."""

    name: str
    title: str = ""
    version: int | None = None
    """None for a draft, and for the default agent while nothing of it is published."""
    chat: ModelCard | None = None
    """The model that writes its replies; None is that of this server."""
    opening: dict[str, Any] = field(default_factory=dict)
    """Settings of its sessions, in the words of `session.update`."""
    fixed: frozenset[str] = frozenset()
    """Fields of these settings that callers do not change."""
    instructions: str = ""
    first_words: str = ""
    pace: float = 1.0
    session_s: int | None = None
    tools: tuple[str, ...] | None = None
    """Servers of tools, and single tools, that it calls; None: those that are offered in every conversation."""
    callers: int | None = None
    """Callers at once; None: as many as the server takes."""

    @property
    def label(self) -> str:
        """Name and version, as records have them; empty where the server's settings answer."""
        is_composed = self.version or self.name != VOICE
        return f"{self.name}@{self.version or DRAFT}" if is_composed else ""


async def answering(
    named: str, *, user_id: int | None = None, is_guest: bool = False, variables: Mapping[str, str] | None = None
) -> Answering:
    """The agent of a name such as `reception`, or of one of its versions, `reception@2` or `reception@draft`.

    Versions are for keys and staff, drafts for people who may change agents.

    Raises:
        ModelNotFound: if there is none, or not for this caller.
    """
    if (parts := NAMED.fullmatch(named)) is None:
        raise ModelNotFound(f"The agent '{named[:80]}' does not exist.")
    return await run_in_db_thread(_answering, parts[1], parts[2] or "", user_id, is_guest, variables or {})


def _answering(name: str, version: str, user_id: int | None, is_guest: bool, variables: Mapping[str, str]) -> Answering:
    agent = Agent.objects.filter(name=name).first()
    current = agent.current if agent else None
    composed: Composition | None = current
    if agent is not None and version:
        user = get_user_model().objects.filter(pk=user_id).first()
        if version == DRAFT:
            composed = agent if user and user.is_staff and user.has_perm("agents.change_agent") else None
        else:  # each may have a model of its own, so not for all visitors
            may = user.is_staff if user else not is_guest
            composed = current = agent.versions.filter(number=int(version)).first() if may else None
    if is_guest and name != VOICE and not (current and current.is_public):
        composed = None
    if agent is None or composed is None:
        if name == VOICE and not version:
            return Answering(VOICE)
        raise ModelNotFound(f"The agent '{name[:80]}'{f' of version {version}' if version else ''} does not exist.")
    return Answering(
        name,
        composed.title,
        composed.number if isinstance(composed, AgentVersion) else None,
        chat_card(agent, composed),
        composed.opening(),
        composed.fixed_fields,
        filled(composed.instructions, variables),
        filled(composed.first_words, variables),
        composed.pace,
        composed.session_s,
        composed.tool_names or None,
        composed.callers,
    )


def deciding() -> list[str]:
    """Return the settings of the environment that choose the default agent's model, in the place of the admin."""
    return [name for name in DECIDING if getattr(settings, name)]


def chat_card(agent: Agent, composed: Composition) -> ModelCard | None:
    """The model that writes the replies of an agent; None is that of this server."""
    mind = Mind.SERVER if agent.name == VOICE and deciding() else composed.mind
    documents, forbidden = folder_of(composed.documents), composed.forbidden_words
    if mind == Mind.SERVER:
        card = catalogue().default("chat")
        return of_agent(card, documents, forbidden) if documents or forbidden else None
    server, local, engine = ServerSettings("", "", ""), settings.LOCAL_CHAT, "skills"
    if mind == Mind.ADDRESS:
        key = agent.key_for(composed.address)
        server, local, engine = ServerSettings(composed.address, key, composed.model, settings.CHAT_TIMEOUT_S), None, ""
    elif mind == Mind.FILE:
        local, engine = own_model(composed.file), "both"
    card = chat_cards(
        server, sees_images=False, local=local, engine=engine, reads_documents=settings.CHAT_READS_DOCUMENTS
    )[0]
    options = {**card.options, "is_guarded": True} if mind == Mind.ADDRESS else card.options
    return of_agent(replace(card, options=options, fallbacks=composed.fallback_list), documents, forbidden)


def own_model(file: str) -> LocalModelSettings:
    """A GGUF model that runs here."""
    return LocalModelSettings(
        chat_model_file(file, settings.MODELS_DIR),
        settings.CHAT_MODEL_THREADS,
        settings.CHAT_MODEL_CONTEXT,
        settings.CHAT_MODEL_SLOTS,
        settings.CHAT_TIMEOUT_S,
        idle_s=600.0,
    )


def read_prompt(given: object, at: str) -> tuple[str, dict[str, str]]:
    """The agent that OpenAI's `prompt` names, with its version, and the variables of its instructions.

    Raises:
        InvalidParameter: if it cannot be read; `at` is where it stands.
    """
    prompt = read_object(given, at)
    name = read_text(prompt.get("id"), f"{at}.id", limit=100)
    version = read_text(prompt.get("version") or "", f"{at}.version", limit=20)
    texts = {
        key: value.get("text") if isinstance(value, dict) else value
        for key, value in read_object(prompt.get("variables") or {}, f"{at}.variables").items()
    }
    return f"{name}@{version}" if version else name, read_metadata(texts, f"{at}.variables") or {}


def listed(*, is_guest: bool = False) -> list[str]:
    """Return the names of the published agents that a caller may talk to."""
    found = [(agent.name, agent.current) for agent in Agent.objects.all()]
    return [
        name for name, current in found if current is not None and (current.is_public or name == VOICE or not is_guest)
    ]
