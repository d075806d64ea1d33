"""Relays as processes of their own: found by the servers that issue grants, drained without them."""

from __future__ import annotations

from pathlib import Path

from tests.ports import free_udp_port
from tests.realtime.aoq.peer import allocate, calling, close_code, granted, url_of
from tests.realtime.conftest import Serve
from tests.serving import START_S, Process
from voiceapp.realtime.aoq.grants import Rejection


async def test_a_relay_process_carries_the_sessions_that_a_server_grants(serve: Serve, tmp_path: Path) -> None:
    product = serve()
    good, port = product.keys["good"], free_udp_port()
    assert (await allocate(product.origin, good))[0] == 503

    relay = Process("runrelay", "--port", str(port), environment=product.environment)
    try:
        await product.row("SELECT port FROM realtime_aoqrelay", within_s=START_S)
        grant = await granted(product.origin, good)
        assert grant["clientRelayEndpoints"] == [{"endpoint": "127.0.0.1", "port": port, "route_index": 0}]
        while await close_code(url_of(grant), grant["clientRelayCertFingerprint"]) == Rejection.BUSY + 64:
            pass  # it still loads its engines
        async with calling(await granted(product.origin, good)) as peer:
            await peer.ask("What time is it?")
            await peer.wait("response.created")
            relay.signal()
            assert (await peer.wait("session.closing"))["code"] == 4012
            await product.row("SELECT port FROM realtime_aoqrelay WHERE is_draining")
            assert (await allocate(product.origin, good))[0] == 503
            assert (await peer.wait("response.done"))["response"]["status"] == "completed"
        assert relay.wait(30) == 0, relay.log
        assert product.rows("SELECT port FROM realtime_aoqrelay") == []
    finally:
        relay.kill()
