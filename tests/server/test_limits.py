"""Counting connections."""

from __future__ import annotations

from voiceapp.server.limits import Gate, ServerLimits


def test_it_admits_up_to_both_limits_and_again_after_a_release() -> None:
    gate = Gate(total=3, per_address=2)
    assert gate.admit("a")
    assert gate.admit("a")
    assert not gate.admit("a")
    assert gate.admit("b")
    assert not gate.admit("c")
    gate.release("a")
    assert gate.admit("c")


def test_it_counts_only_the_total_behind_a_proxy() -> None:
    gate = Gate.for_connections(ServerLimits(connections=5, connections_per_address=2, trusted_proxies=1))
    assert [gate.admit("proxy") for _ in range(6)] == [True] * 5 + [False]
