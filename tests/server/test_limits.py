"""Counting connections, and bodies with a limit."""

from __future__ import annotations

import asyncio
from typing import Any

from voiceapp.http.refusals import Message
from voiceapp.server.limits import Gate, LimitedBody, ServerLimits, declared_length


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


def test_it_reads_the_announced_length() -> None:
    assert declared_length({"headers": []}) == 0
    assert declared_length({"headers": [(b"content-length", b"12")]}) == 12
    assert declared_length({"headers": [(b"content-length", b"12"), (b"transfer-encoding", b"chunked")]}) is None


class Conversation:
    """What a server would hand over and be told."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)
        self.said: list[Message] = []

    async def receive(self) -> Message:
        if not self.parts:
            await asyncio.Event().wait()
        body = self.parts.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(self.parts)}

    async def send(self, message: Message) -> None:
        self.said.append(message)

    def limited(self, **limits: Any) -> LimitedBody:
        scope: dict[str, Any] = {"type": "http"}
        return LimitedBody(scope, self.receive, self.send, ServerLimits(**limits))


async def test_it_refuses_in_the_application_s_place_and_ignores_it_from_then_on() -> None:
    talk = Conversation(b"xx", b"xx", b"xx")
    body = talk.limited(body_bytes=3)
    assert (await body.receive())["body"] == b"xx"
    assert (await body.receive())["type"] == "http.disconnect"
    await body.send({"type": "http.response.start", "status": 200, "headers": []})
    assert [message.get("status") for message in talk.said] == [413, None, None]
    assert not talk.said[-1]["more_body"]
    assert not talk.parts, "the rest was not thrown away"


async def test_it_lets_a_body_of_exactly_the_limit_pass() -> None:
    talk = Conversation(b"xx", b"x")
    body = talk.limited(body_bytes=3)
    assert (await body.receive())["more_body"]
    assert not (await body.receive())["more_body"]
    assert talk.said == []


async def test_it_refuses_a_body_that_stops_arriving() -> None:
    talk = Conversation()
    assert (await talk.limited(body_timeout_s=0.05).receive())["type"] == "http.disconnect"
    assert talk.said[0]["status"] == 408
