"""The ways into a session, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.cards import Transport as TransportName
from voiceapp.engines import opus
from voiceapp.realtime.models import Entrance, TransportKind


@dataclass(frozen=True, slots=True)
class Door:
    """A way into a session."""

    transport: TransportName
    """Which of a model card's transports it needs, and how its sessions are recorded."""
    entrance: str
    """The `Entrance` under which its sessions are recorded."""
    takes_seat: bool
    """Whether admission takes the seat. Else the door takes it when the caller connects (`Seat.take`)."""
    decoded_rate_hz: int | None = None
    """Sample rate to which the server decodes the caller's media; None where callers send PCM themselves."""
    ends_with_temporary_key: bool = False
    """Whether a session of a temporary key ends with it, whatever TEMPORARY_KEYS_END_SESSIONS says."""
    runs_tasks: bool = False
    """Whether a connection carries tasks, each a session of its own, instead of one session."""

    speaks_openai: bool = False
    """Whether events on its data channel are those of OpenAI's current dialect."""

    def transport_of(self, card: ModelCard) -> str:
        """The `TransportKind` of a session with this model."""
        return str(TransportKind.RELAYED) if self.forwards(card) else self.transport

    def forwards(self, card: ModelCard) -> bool:
        """Whether a session with this model is passed on to another service, and not seen here."""
        return self.transport != "websocket" and (card.forwards_calls if self.speaks_openai else card.forwards_offers)


API_SOCKET = Door("websocket", str(Entrance.PROGRAM), takes_seat=True)
PAGE_SOCKET = Door("websocket", str(Entrance.PAGE), takes_seat=True)
API_OFFER = Door("webrtc", str(Entrance.PROGRAM), takes_seat=False, decoded_rate_hz=opus.DECODED_RATE_HZ)
OPENAI_OFFER = replace(API_OFFER, speaks_openai=True)
PAGE_OFFER = replace(API_OFFER, entrance=str(Entrance.PAGE))
API_GRANT = Door("aoq", str(Entrance.PROGRAM), takes_seat=False, decoded_rate_hz=opus.DECODED_RATE_HZ)
TASK_GRANT = replace(API_GRANT, runs_tasks=True)
PAGE_GRANT = replace(API_GRANT, entrance=str(Entrance.PAGE))
