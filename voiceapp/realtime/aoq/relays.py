"""The relays of this installation: which live, and which of them a caller should try, in which order."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.utils import timezone

from voiceapp.errors import EngineUnavailable
from voiceapp.realtime.aoq.models import AoqRelay
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.relays import Relay

logger = logging.getLogger(__name__)

HEARTBEAT_S = 5.0
LIVE = timedelta(seconds=3 * HEARTBEAT_S)
FORGOTTEN = timedelta(hours=1)
MAX_ROUTES = 3
"""Relays in one grant."""


@dataclass(frozen=True, slots=True)
class RelayState:
    endpoint: str
    port: int
    fingerprint: str
    load: int
    capacity: int
    is_draining: bool


async def announce(state: RelayState) -> None:
    """Write that the relay of this process lives, and how busy it is."""
    facts = {
        "region": settings.AOQ_REGION,
        "fingerprint": state.fingerprint,
        "load": state.load,
        "capacity": state.capacity,
        "is_draining": state.is_draining,
        "heartbeat_at": timezone.now(),
        "served_by": own_name(),
    }
    await AoqRelay.objects.aupdate_or_create(endpoint=state.endpoint, port=state.port, defaults=facts)


async def withdraw(endpoint: str, port: int) -> None:
    """Take the relay of this process out of the table."""
    await AoqRelay.objects.filter(endpoint=endpoint, port=port, served_by=own_name()).adelete()


async def live_relays() -> list[AoqRelay]:
    """Relays that take new sessions now."""
    fresh = AoqRelay.objects.filter(heartbeat_at__gt=timezone.now() - LIVE, is_draining=False)
    return [relay async for relay in fresh.order_by("pk")]


async def open_relays() -> list[Relay]:
    """Relays to which a page may connect; none while the database is away."""
    try:
        return [Relay(f"https://{host(relay.endpoint)}:{relay.port}", relay.served_by) for relay in await live_relays()]
    except DatabaseFailure as error:
        logger.warning("AOQ: relays cannot be looked up: %s", error)
        return []


async def routes_for(address: str) -> list[AoqRelay]:
    """The relays to try from an Internet address, the best first: of its region, then the least busy; full ones last.

    All of them show the same certificate, because a grant names one fingerprint.

    Raises:
        EngineUnavailable: no relay lives.
    """
    region = region_of(address)

    def distance(relay: AoqRelay) -> tuple[bool, bool, float, int]:
        busy = relay.load / max(1, relay.capacity)
        return busy >= 1, relay.region != region, busy, relay.pk

    relays = sorted(await live_relays(), key=distance)
    if not relays:
        raise EngineUnavailable(
            "No AOQ relay is running. Use WebRTC or a WebSocket.",
            remedy="Install requirements-aoq.txt and look for 'AOQ' in the log of the server, or start "
            "`manage.py runrelay`.",
        )
    return [relay for relay in relays if relay.fingerprint == relays[0].fingerprint][:MAX_ROUTES]


def region_of(address: str) -> str:
    """The region of an address by AOQ_REGIONS; of several networks that hold it, the smallest counts."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    networks = ((ipaddress.ip_network(network), region) for network, region in settings.AOQ_REGIONS.items())
    holding = [(network.prefixlen, region) for network, region in networks if parsed in network]
    return max(holding, default=(0, ""))[1]


def forget_dead_relays(now: datetime) -> int:
    """Delete the rows of relays that died without a word; returns how many."""
    return int(AoqRelay.objects.filter(heartbeat_at__lt=now - FORGOTTEN).delete()[0])


def host(endpoint: str) -> str:
    """An endpoint as it stands in a URL."""
    return f"[{endpoint}]" if ":" in endpoint else endpoint
