"""The life of a peer connection."""

from __future__ import annotations

import pytest

from voiceapp.errors import LocalProtocolError
from voiceapp.protocol.states import step
from voiceapp.realtime.webrtc.states import LIVE, PEER_STEPS, PeerState

STEPS = {name for _, name in PEER_STEPS}


def test_every_state_can_be_reached() -> None:
    assert {PeerState.NEGOTIATING, *PEER_STEPS.values()} == set(PeerState)


def test_every_live_connection_can_be_lost_and_closed() -> None:
    for state in LIVE:
        assert step(PEER_STEPS, state, "lose") is PeerState.LOST
        assert step(PEER_STEPS, state, "close") is PeerState.CLOSED


def test_steps_not_in_the_table_are_refused() -> None:
    for state in PeerState:
        for name in STEPS:
            if (state, name) not in PEER_STEPS:
                with pytest.raises(LocalProtocolError, match=name):
                    step(PEER_STEPS, state, name)
    assert not [key for key in PEER_STEPS if key[0] is PeerState.CLOSED]
