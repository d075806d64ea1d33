"""The tables of states."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from voiceapp.errors import LocalProtocolError
from voiceapp.protocol.states import (
    LIVE,
    READING_STEPS,
    RESPONSE_STEPS,
    SESSION_STEPS,
    SPEECH_STEPS,
    TURN_STEPS,
    ReadingState,
    ResponseState,
    SessionState,
    SpeechState,
    TurnState,
    step,
)

TABLES = [
    (SESSION_STEPS, SessionState.ACTIVE),
    (TURN_STEPS, TurnState.QUIET),
    (SPEECH_STEPS, SpeechState.BUFFERED),
    (READING_STEPS, ReadingState.NONE),
    (RESPONSE_STEPS, ResponseState.WAITING),
]


@pytest.mark.parametrize(("table", "first"), TABLES)
def test_every_state_can_be_reached(table: Mapping[tuple[Any, str], Any], first: Enum) -> None:
    assert {first, *table.values()} == set(type(first))


@pytest.mark.parametrize(("table", "first"), TABLES)
def test_steps_not_in_the_table_are_refused(table: Mapping[tuple[Any, str], Any], first: Enum) -> None:
    names = {name for _, name in table}
    for state in type(first):
        for name in names:
            if (state, name) in table:
                assert step(table, state, name) is table[state, name]
            else:
                with pytest.raises(LocalProtocolError, match=f"'{name}'"):
                    step(table, state, name)


def test_an_ended_response_can_do_nothing_more() -> None:
    ended = set(ResponseState) - LIVE
    assert not [step for step in RESPONSE_STEPS if step[0] in ended]
    assert {after for after in RESPONSE_STEPS.values() if after not in LIVE} == ended
