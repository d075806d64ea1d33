"""The ways into a session, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.catalogue.cards import Transport as TransportName
from voiceapp.engines.sound import opus
from voiceapp.realtime.models import Entrance, TransportKind


@dataclass(frozen=True, slots=True)
class Door:
    """A way into a session."""

    transport: TransportName
    """Transport that a model's card must have; sessions are recorded with it."""
    entrance: str
    """The `Entrance` under which its sessions are recorded."""
    takes_seat: bool
    """True if admission takes the seat. Else the door takes it when the caller connects (`Seat.take`)."""
    decoded_rate_hz: int | None = None
    """Sample rate to which the server decodes the caller's media; None where callers send PCM themselves."""
    ends_with_temporary_key: bool = False
    """True if a session of a temporary key ends with it, whatever TEMPORARY_KEYS_END_SESSIONS says."""
    runs_tasks: bool = False
    """True if a connection carries tasks, each a session of its own, instead of one session."""
    kind: ModelKind = "realtime"
    """Kind of the models that its sessions use: `tts` for those that read text aloud."""
    passes_on: Literal["offer", "call", ""] = "offer"
    """Kind of request that a service which speaks its callers' dialect is given to hold their sessions: an offer (or a
    request for a grant) in ours, a call in OpenAI's current one; empty: sessions are held here."""

    def transport_of(self, card: ModelCard) -> str:
        """The `TransportKind` of a session with this model."""
        return str(TransportKind.RELAYED) if self.forwards(card) else self.transport

    def forwards(self, card: ModelCard) -> bool:
        """Return whether a session with this model is passed on to another service, and not seen here."""
        return {"offer": card.forwards_offers, "call": card.forwards_calls, "": False}[self.passes_on]


API_SOCKET = Door("websocket", str(Entrance.PROGRAM), takes_seat=True, passes_on="")
READ_ALOUD_SOCKET = replace(API_SOCKET, kind="tts")
PAGE_SOCKET = replace(API_SOCKET, entrance=str(Entrance.PAGE))
API_OFFER = Door("webrtc", str(Entrance.PROGRAM), takes_seat=False, decoded_rate_hz=opus.DECODED_RATE_HZ)
OPENAI_OFFER = replace(API_OFFER, passes_on="call")
HELD_OFFER = replace(API_OFFER, passes_on="")
PAGE_OFFER = replace(API_OFFER, entrance=str(Entrance.PAGE))
API_GRANT = Door("aoq", str(Entrance.PROGRAM), takes_seat=False, decoded_rate_hz=opus.DECODED_RATE_HZ)
TASK_GRANT = replace(API_GRANT, runs_tasks=True)
PAGE_GRANT = replace(API_GRANT, entrance=str(Entrance.PAGE))
