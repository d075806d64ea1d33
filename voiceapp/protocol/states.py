"""Every state machine of a conversation, as tables from (state, step) to state. An absent pair is an error."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import TypeVar

from voiceapp.errors import LocalProtocolError


class SessionState(Enum):
    ACTIVE = "active"
    FINISHING = "finishing"
    """The client said that nothing more will come; what is under way is completed."""
    FINISHED = "finished"


SESSION_STEPS: dict[tuple[SessionState, str], SessionState] = {
    (SessionState.ACTIVE, "finish"): SessionState.FINISHING,
    (SessionState.FINISHING, "drained"): SessionState.FINISHED,
    (SessionState.ACTIVE, "close"): SessionState.FINISHED,
    (SessionState.FINISHING, "close"): SessionState.FINISHED,
    (SessionState.FINISHED, "close"): SessionState.FINISHED,
}


class TurnState(Enum):
    QUIET = "quiet"
    SPEAKING = "speaking"
    PAUSED = "paused"
    """Silence after speech, not yet long enough to end the turn."""


TURN_STEPS: dict[tuple[TurnState, str], TurnState] = {
    (TurnState.QUIET, "onset"): TurnState.SPEAKING,
    (TurnState.SPEAKING, "pause"): TurnState.PAUSED,
    (TurnState.PAUSED, "resume"): TurnState.SPEAKING,
    (TurnState.PAUSED, "end"): TurnState.QUIET,
    (TurnState.SPEAKING, "end"): TurnState.QUIET,
}


class ResponseState(Enum):
    WAITING = "waiting"
    """Created; the caller's words are still being recognised."""
    GENERATING = "generating"
    DRAINING = "draining"
    """The reply is complete; its audio is still being sent on time."""
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = frozenset({ResponseState.WAITING, ResponseState.GENERATING, ResponseState.DRAINING})

RESPONSE_STEPS: dict[tuple[ResponseState, str], ResponseState] = {
    (ResponseState.WAITING, "generate"): ResponseState.GENERATING,
    (ResponseState.GENERATING, "end"): ResponseState.DRAINING,
    (ResponseState.DRAINING, "complete"): ResponseState.COMPLETED,
    (ResponseState.DRAINING, "cut_short"): ResponseState.INCOMPLETE,
    **{(state, "cancel"): ResponseState.CANCELLED for state in LIVE},
    **{(state, "fail"): ResponseState.FAILED for state in LIVE},
}


class EchoState(Enum):
    """Presence of our own sound in the caller's microphone."""

    UNKNOWN = "unknown"
    SUSPECTED = "suspected"
    FOUND = "found"
    ABSENT = "absent"


ECHO_STEPS: dict[tuple[EchoState, str], EchoState] = {
    (EchoState.UNKNOWN, "hit"): EchoState.SUSPECTED,
    (EchoState.SUSPECTED, "hit"): EchoState.SUSPECTED,
    (EchoState.SUSPECTED, "doubt"): EchoState.UNKNOWN,
    (EchoState.ABSENT, "hit"): EchoState.ABSENT,
    (EchoState.FOUND, "hit"): EchoState.FOUND,
    **{(state, "agree"): EchoState.FOUND for state in EchoState},
    (EchoState.UNKNOWN, "miss_all"): EchoState.ABSENT,
    (EchoState.SUSPECTED, "miss_all"): EchoState.ABSENT,
    (EchoState.FOUND, "miss_all"): EchoState.UNKNOWN,
    (EchoState.ABSENT, "miss_all"): EchoState.ABSENT,
}


class EchoRisk(IntEnum):
    """Likelihood that a frame with speech is the echo of the reply."""

    NONE = 0
    POSSIBLE = 1
    """Not known yet: the first sound of a session is being played."""
    LIKELY = 2


class SpeechVerdict(Enum):
    """Verdict on speech during a reply."""

    OPEN = "open"
    INTERRUPTS = "interrupts"
    TAKEN_BACK = "taken_back"
    """An echo, a noise, or a word that only says "I listen"."""


State = TypeVar("State", bound=Enum)


def step(table: Mapping[tuple[State, str], State], state: State, name: str) -> State:
    """The state after `name`.

    Raises:
        LocalProtocolError: the table has no such step.
    """
    try:
        return table[state, name]
    except KeyError:
        raise LocalProtocolError(f"No step '{name}' from {type(state).__name__} '{state.value}'.") from None
