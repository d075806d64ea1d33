"""The content of a handshake beside credentials: model, dialect, first settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from voiceapp.accounts.temporary_keys import read_client_secret
from voiceapp.agents.answering import read_prompt
from voiceapp.catalogue.defaults import VOICE
from voiceapp.catalogue.lookup import catalogue, mcp_addresses
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.configuration import SessionConfig, merge
from voiceapp.protocol.forwarded.texts import FORWARDING
from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect
from voiceapp.protocol.openai_realtime.older import OlderDialect
from voiceapp.protocol.openai_realtime.settings import REALTIME, TRANSCRIPTION, settings_from
from voiceapp.protocol.read_aloud import READ_ALOUD
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.protocol.wire.reading import EventError
from voiceapp.realtime.admission import Admitted
from voiceapp.realtime.media.client_events import without_formats

BETA_HEADER = "realtime=v1"
"""In `OpenAI-Beta`: the client speaks OpenAI's older dialect."""
SUBPROTOCOL = "realtime"
BETA_SUBPROTOCOL = "openai-beta.realtime-v1"
KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""A browser cannot send headers with a WebSocket, so its key or client secret is the rest of a subprotocol's name."""


@dataclass(frozen=True, slots=True)
class Handshake:
    model: str
    dialect: Dialect = OWN
    opening: dict[str, Any] = field(default_factory=dict)
    """Settings in the words of `session.update`."""
    listens_only: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    """Variables for the instructions of the agent that `model` names."""

    @property
    def reads_aloud(self) -> bool:
        return self.dialect is READ_ALOUD

    def open(self, admitted: Admitted, *, is_plain: bool = False) -> Admitted:
        """The admitted session with what its handshake says of it; `is_plain`: it is a WebSocket and ends with it."""
        opened = admitted.opened_with(self.opening, listens_only=self.listens_only)
        return opened.forwarded() if is_plain and self.dialect is OWN and opened.card.forwards_events else opened

    @property
    def is_older(self) -> bool:
        """The client speaks OpenAI's older dialect."""
        return isinstance(self.dialect, OlderDialect)

    def dialect_of(self, admitted: Admitted) -> Dialect:
        """Return the dialect in which the session's client is read and written to."""
        return FORWARDING if admitted.call.is_forwarded else self.dialect


@dataclass(frozen=True, slots=True)
class Wire:
    query: Mapping[str, str]
    is_openais: bool = True
    """The request came to a path of OpenAI's clients; only there their dialects are spoken."""
    authorization: str = ""
    beta: str = ""
    subprotocols: tuple[str, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    """Settings that came in the body of an SDP exchange."""
    has_track: bool = False

    @property
    def bearer(self) -> str:
        """The `Authorization` header, or what stands for it."""
        named = next((name for name in self.subprotocols if name.startswith(KEY_SUBPROTOCOL)), None)
        return self.authorization or (f"Bearer {named.removeprefix(KEY_SUBPROTOCOL)}" if named else "")

    @property
    def reads_aloud(self) -> bool:
        """A WebSocket names a model of synthesis instead of a realtime model."""
        named = self.query.get("model") or ""
        return not (self.has_track or catalogue().find(named, "realtime")) and bool(catalogue().find(named, "tts"))

    @property
    def subprotocol(self) -> str | None:
        """The one that the server chooses."""
        return SUBPROTOCOL if SUBPROTOCOL in self.subprotocols else None


def read_handshake(wire: Wire) -> Handshake:
    """Read a handshake.

    Raises:
        InvalidParameter: if its settings cannot be read.
        ModelNotFound: if it wants a transcription, and no model here transcribes.
    """
    session = {**read_client_secret(wire.bearer.partition(" ")[2].strip())[1], **wire.session}
    if session.get("type") not in (None, REALTIME, TRANSCRIPTION):
        raise InvalidParameter(f"session.type must be {REALTIME} or {TRANSCRIPTION}.", param="session.type")
    named = str(wire.query.get("model") or session.get("model") or "")
    if wire.reads_aloud:
        return Handshake(named, READ_ALOUD)
    transcribes = wire.query.get("intent") == TRANSCRIPTION or session.get("type") == TRANSCRIPTION
    model = listening_model(named) if transcribes else named
    card = catalogue().find(model, "realtime")
    variables: dict[str, str] = {}
    if session.get("prompt") and not transcribes and (card is None or card.name == VOICE):
        model, variables = read_prompt(session["prompt"], "session.prompt")
        card = catalogue().find(model, "realtime")
    listens = transcribes or (card is not None and model in card.listens_only)
    opening = _settings(session)
    if not wire.is_openais:
        return Handshake(model, OWN, opening, listens, variables)
    is_older = BETA_HEADER in wire.beta or BETA_SUBPROTOCOL in wire.subprotocols
    kind = OlderDialect if is_older else OpenAIRealtimeDialect
    dialect = kind(kind=TRANSCRIPTION if listens else REALTIME, has_track=wire.has_track)
    opening = without_formats(opening) if wire.has_track else _with_rates(opening)
    return Handshake(model, dialect, opening, listens, variables)


def listening_model(named: str) -> str:
    """The realtime model that transcribes for a caller who names one, a recognition model, or none."""
    models = catalogue()
    if named and not models.find(named, "asr"):
        return named
    return models.default("realtime").name


def _settings(session: Mapping[str, Any]) -> dict[str, Any]:
    try:
        opening = settings_from(dict(session), "session")
    except EventError as refused:
        raise InvalidParameter(refused.message, param=refused.param) from None
    merge(
        SessionConfig(model="", voice="", mcp_servers=mcp_addresses()), opening
    )  # refused here, where the caller can still be told with a status
    return opening


def _with_rates(opening: dict[str, Any]) -> dict[str, Any]:
    """24 kHz where nothing else is said: the one rate of PCM in those dialects."""
    return {"input_audio_format": "pcm24", "output_audio_format": "pcm24", **opening}
