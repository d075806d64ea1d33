"""Room for callers who are waited for is shared between accounts."""

from __future__ import annotations

from voiceapp.realtime.aoq.waiting import WaitingList


def test_while_there_is_room_nobody_makes_way() -> None:
    waiting = WaitingList[str](2)
    assert waiting.add("first", "ada") is None
    assert waiting.add("second", "ada") is None
    assert len(waiting) == 2


def test_who_has_the_most_loses_the_oldest_and_others_lose_nothing() -> None:
    waiting = WaitingList[str](3)
    for thing, owner in (("bob 1", "bob"), ("ada 1", "ada"), ("ada 2", "ada")):
        waiting.add(thing, owner)
    assert waiting.add("ada 3", "ada") == "ada 1"
    assert waiting.add("eve 1", "eve") == "ada 2"
    assert len(waiting) == 3
    assert waiting.add("eve 2", "eve") == "bob 1"  # everybody has one: the oldest goes


def test_what_left_makes_room() -> None:
    waiting = WaitingList[str](1)
    waiting.add("first", "ada")
    waiting.remove("first")
    waiting.remove("first")
    assert waiting.add("second", "ada") is None
