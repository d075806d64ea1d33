"""States of a session that another service serves, as tables from (state, step) to state."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Life of the session here, over one session after the other at the service."""

    OPENING = "opening"
    LIVE = "live"
    RENEWING = "renewing"
    """The session at the service is over or old; the next one is being begun."""
    FINISHING = "finishing"
    """The caller has asked for the end, which the service will confirm."""
    FINISHED = "finished"


PHASE_STEPS: dict[tuple[Phase, str], Phase] = {
    (Phase.OPENING, "open"): Phase.LIVE,
    (Phase.OPENING, "finish"): Phase.FINISHING,
    (Phase.LIVE, "renew"): Phase.RENEWING,
    (Phase.LIVE, "finish"): Phase.FINISHING,
    (Phase.LIVE, "end"): Phase.FINISHED,
    (Phase.RENEWING, "open"): Phase.LIVE,
    (Phase.RENEWING, "finish"): Phase.FINISHING,
    (Phase.FINISHING, "open"): Phase.FINISHING,
    (Phase.FINISHING, "finish"): Phase.FINISHING,
    (Phase.FINISHING, "renew"): Phase.FINISHED,
    (Phase.FINISHING, "end"): Phase.FINISHED,
    (Phase.FINISHED, "finish"): Phase.FINISHED,
}


class Floor(Enum):
    """Turn of the conversation, as far as the service's events tell it."""

    QUIET = "quiet"
    SPEAKING = "speaking"
    AWAITING = "awaiting"
    """A response is expected, and has not begun."""


FLOOR_STEPS: dict[tuple[Floor, str], Floor] = {
    **{(floor, "speech"): Floor.SPEAKING for floor in Floor},
    **{(floor, "expect"): Floor.AWAITING for floor in Floor},
    **{(floor, "stop"): Floor.QUIET for floor in Floor},
    (Floor.QUIET, "ask"): Floor.AWAITING,
    (Floor.SPEAKING, "ask"): Floor.SPEAKING,
    (Floor.AWAITING, "ask"): Floor.AWAITING,
    (Floor.QUIET, "settle"): Floor.QUIET,
    (Floor.SPEAKING, "settle"): Floor.SPEAKING,
    (Floor.AWAITING, "settle"): Floor.QUIET,
}
"""`expect`: speech has ended, and a response will follow; `stop`: speech has ended, or the service's session has, and
none will; `ask`: the caller asks for a response; `settle`: the response has begun, or will not come."""
