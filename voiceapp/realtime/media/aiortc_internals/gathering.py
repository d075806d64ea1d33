"""Candidates: a range of ports, several relays one after the other, and letting go of those that do not answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import aioice
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import StunProtocol, server_reflexive_candidate
from aioice.turn import TurnTransport
from aiortc import RTCPeerConnection
from aiortc.rtcicetransport import parse_stun_turn_uri

RELAY_S = 3.0
"""Timeout of one relay."""
STUN_S = 1.0
"""Timeout of a STUN server, which each call would wait for where it is gone; it is asked twice in that time."""


def use_ports(peer: RTCPeerConnection, first: int, last: int) -> None:
    """Let a connection bind its sockets within a range of UDP ports; call it before the answer is set.

    aioice lets the system choose the port. Relays are not asked.
    """
    for connection in _connections(peer):

        async def within(
            component: int,
            addresses: list[str],
            timeout: int = 5,  # noqa: ASYNC109
            *,
            connection: Any = connection,
        ) -> list[aioice.Candidate]:
            bound = [await _bind(connection, component, address, first, last) for address in addresses]
            protocols = [protocol for protocol in bound if protocol is not None]
            connection._protocols += protocols
            found = [protocol.local_candidate for protocol in protocols]
            return found + await _seen_from_outside(protocols, connection.stun_server, timeout)

        connection.get_component_candidates = within


def limit_stun(peer: RTCPeerConnection) -> None:
    """Let a connection wait no longer than STUN_S for a STUN server; call it before the answer is set."""
    for connection in _connections(peer):
        connection.get_component_candidates = partial(connection.get_component_candidates, timeout=STUN_S)


def use_relays(peer: RTCPeerConnection, urls: Sequence[str], prefer: Callable[[str], None]) -> None:
    """Let a connection try one relay after the other, and `prefer` that which takes it in; call it before the answer is
    set.

    aioice knows one relay only. The credentials, the same for all, are those of the peer's configuration.
    """
    for connection in _connections(peer):
        gather = connection.get_component_candidates

        async def through_relays(
            component: int,
            addresses: list[str],
            timeout: int = 5,  # noqa: ASYNC109
            *,
            connection: Any = connection,
            gather: Any = gather,
        ) -> list[aioice.Candidate]:
            for url in urls:
                relay = parse_stun_turn_uri(url)
                connection.turn_server = relay["host"], relay["port"]
                connection.turn_ssl, connection.turn_transport = relay["scheme"] == "turns", relay["transport"]
                if found := await gather(component, addresses, RELAY_S):
                    prefer(url)
                    return list(found)
            return []

        connection.get_component_candidates = through_relays


def drop_relays(peer: RTCPeerConnection) -> None:
    """Let go of relays at once: a connection that is closing waits a minute for one that does not answer."""
    for connection in _connections(peer):
        for protocol in connection._protocols:
            if isinstance(protocol.transport, TurnTransport):
                relay: Any = protocol.transport
                relay._TurnTransport__inner_protocol.transport.abort()
                for task in (relay._TurnTransport__close_task, *relay._TurnTransport__send_tasks):
                    if task is not None:
                        task.cancel()


def _connections(peer: RTCPeerConnection) -> list[Any]:
    transports = {transceiver.receiver.transport.transport for transceiver in peer.getTransceivers()}
    if peer.sctp is not None:
        transports.add(peer.sctp.transport.transport)
    return [transport._connection for transport in transports]


async def _seen_from_outside(
    protocols: Sequence[StunProtocol],
    server: tuple[str, int] | None,
    timeout: float,  # noqa: ASYNC109
) -> list[aioice.Candidate]:
    """The addresses that a STUN server sees these sockets under; it is asked by IPv4."""
    tasks = [
        asyncio.create_task(server_reflexive_candidate(protocol, server), name="STUN binding")
        for protocol in protocols
        if server is not None and ":" not in protocol.local_candidate.host
    ]
    if not tasks:
        return []
    done, pending = await asyncio.wait(tasks, timeout=timeout)
    for task in pending:
        task.cancel()
    return [task.result()[0] for task in done if task.exception() is None]


async def _bind(connection: Any, component: int, address: str, first: int, last: int) -> StunProtocol | None:
    """A socket on a free port of the range, begun at a random place so that calls seldom ask for the same one."""
    loop = asyncio.get_running_loop()
    count = last - first + 1
    start = secrets.randbelow(count)
    for step in range(count):
        port = first + (start + step) % count
        try:
            _, protocol = await loop.create_datagram_endpoint(
                lambda: StunProtocol(connection), local_addr=(address, port)
            )
        except OSError:
            continue
        protocol.local_candidate = aioice.Candidate(
            foundation=candidate_foundation("host", "udp", address),
            component=component,
            transport="udp",
            priority=candidate_priority(component, "host"),
            host=address,
            port=port,
            type="host",
        )
        return protocol
    return None
