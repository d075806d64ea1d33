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


class SpeechState(Enum):
    """Events of an utterance that the client has been sent."""

    BUFFERED = "buffered"
    """Nothing before the commit, which is the client's."""
    DOUBTFUL = "doubtful"
    """Nothing yet: it began during a reply and may be no interruption."""
    AWAITING = "awaiting"
    """Nothing yet, and it is over: its words decide."""
    ANNOUNCED = "announced"
    """`speech_started`, so `speech_stopped` must follow."""
    COMMITTED = "committed"


SPEECH_STEPS: dict[tuple[SpeechState, str], SpeechState] = {
    (SpeechState.BUFFERED, "doubt"): SpeechState.DOUBTFUL,
    (SpeechState.DOUBTFUL, "end"): SpeechState.AWAITING,
    (SpeechState.AWAITING, "resume"): SpeechState.DOUBTFUL,
    (SpeechState.BUFFERED, "announce"): SpeechState.ANNOUNCED,
    **{(state, "announce"): SpeechState.ANNOUNCED for state in (SpeechState.DOUBTFUL, SpeechState.AWAITING)},
    **{(state, "leave_to_client"): SpeechState.BUFFERED for state in (SpeechState.DOUBTFUL, SpeechState.AWAITING)},
    **{(state, "commit"): SpeechState.COMMITTED for state in (SpeechState.BUFFERED, SpeechState.ANNOUNCED)},
    (SpeechState.COMMITTED, "announce"): SpeechState.ANNOUNCED,
}


class ReadingState(Enum):
    """Readings of what was said up to now, or up to the present pause."""

    NONE = "none"
    PARTIAL = "partial"
    """The words so far are being read."""
    EARLY = "early"
    """All that was said is being read, in case it is the whole turn."""
    READ = "read"
    """An early reading has come back."""
    AWAITED = "awaited"
    """An early reading under way counts as the final one."""
    FINAL = "final"
    KNOWN = "known"
    """The final words are known, possibly none."""


READING_STEPS: dict[tuple[ReadingState, str], ReadingState] = {
    **{(state, name): state for state in ReadingState for name in ("speech", "pause", "end", "read", "fail")},
    **{(state, "resume"): ReadingState.NONE for state in ReadingState},
    **{(state, "keep"): ReadingState.KNOWN for state in ReadingState},
    (ReadingState.NONE, "show"): ReadingState.PARTIAL,
    (ReadingState.NONE, "lull"): ReadingState.EARLY,
    **{(ReadingState.NONE, name): ReadingState.FINAL for name in ("pause", "end")},
    **{(ReadingState.PARTIAL, name): ReadingState.FINAL for name in ("pause", "end")},
    **{(ReadingState.PARTIAL, name): ReadingState.NONE for name in ("read", "fail")},
    (ReadingState.EARLY, "speech"): ReadingState.PARTIAL,
    (ReadingState.EARLY, "pause"): ReadingState.AWAITED,
    (ReadingState.EARLY, "end"): ReadingState.FINAL,
    (ReadingState.EARLY, "read"): ReadingState.READ,
    (ReadingState.EARLY, "fail"): ReadingState.NONE,
    (ReadingState.READ, "speech"): ReadingState.NONE,
    (ReadingState.READ, "pause"): ReadingState.KNOWN,
    (ReadingState.READ, "end"): ReadingState.FINAL,
    (ReadingState.AWAITED, "read"): ReadingState.KNOWN,
    (ReadingState.AWAITED, "fail"): ReadingState.FINAL,
    (ReadingState.FINAL, "fail_final"): ReadingState.NONE,
}
"""`show`, `lull`: a partial or an early reading begins; `speech`: another frame of it; `pause`: the final words are
wanted if nothing more is said; `end`: whatever is said; `read`, `fail`: a partial reading has its words, or none that
count; `fail_final`: the final one has none; `keep`: the final words are known."""


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


class CallsState(Enum):
    """Function calls of the conversation, which the client answers."""

    NONE = "none"
    CALLED = "called"
    """An output has yet to come."""
    TOLD = "told"
    """The same, and the caller knows that it takes a moment."""
    ANSWERED = "answered"
    """All outputs came; the next response reads them."""


CALLS_STEPS: dict[tuple[CallsState, str], CallsState] = {
    **{(state, "call"): CallsState.CALLED for state in CallsState},
    (CallsState.CALLED, "tell"): CallsState.TOLD,
    **{(state, "answer"): CallsState.ANSWERED for state in CallsState},
    (CallsState.NONE, "answer"): CallsState.NONE,
    (CallsState.NONE, "read"): CallsState.NONE,
    (CallsState.CALLED, "read"): CallsState.TOLD,
    (CallsState.TOLD, "read"): CallsState.TOLD,
    (CallsState.ANSWERED, "read"): CallsState.NONE,
}
"""`answer`: the last output came; `read`: a response begins, so the conversation goes on."""


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
