"""The life of a peer connection, as a table from (state, step) to state. An absent pair is an error."""

from __future__ import annotations

from enum import Enum


class PeerState(Enum):
    NEGOTIATING = "negotiating"
    """The offer came; from the SDP answer on, the caller connects."""
    CONNECTED = "connected"
    """Data channels can be opened."""
    OPEN = "open"
    """The channel for events is open: the session can begin."""
    LOST = "lost"
    """The caller hung up, or nothing comes any more."""
    CLOSED = "closed"
    """This server hung up."""


LIVE = frozenset({PeerState.NEGOTIATING, PeerState.CONNECTED, PeerState.OPEN})

PEER_STEPS: dict[tuple[PeerState, str], PeerState] = {
    (PeerState.NEGOTIATING, "connect"): PeerState.CONNECTED,
    (PeerState.NEGOTIATING, "open"): PeerState.OPEN,
    (PeerState.CONNECTED, "open"): PeerState.OPEN,
    (PeerState.CONNECTED, "connect"): PeerState.CONNECTED,
    # A caller's channel may be open before this side knows that one can be, and may be replaced by another one.
    (PeerState.OPEN, "connect"): PeerState.OPEN,
    (PeerState.OPEN, "open"): PeerState.OPEN,
    **{(state, "lose"): PeerState.LOST for state in LIVE},
    **{(state, "close"): PeerState.CLOSED for state in (*LIVE, PeerState.LOST)},
}
