"""Addresses, relay and ports on the server's side of a call, by the settings."""

from __future__ import annotations

from aiortc import RTCBundlePolicy, RTCConfiguration, RTCIceServer, RTCIceTransportPolicy
from django.conf import settings

from voiceapp.ice import turn_credentials


class Relays:
    """The relays that this server may go through itself: aioice knows no `turns:` over UDP."""

    def __init__(self) -> None:
        self._preferred = ""

    def in_order(self) -> list[str]:
        """Their URLs, first the one that took this server in last."""
        known = [url for url in settings.TURN_URLS if not (url.startswith("turns:") and url.endswith("=udp"))]
        return sorted(known, key=lambda url: url != self._preferred)

    def prefer(self, url: str) -> None:
        self._preferred = url


relays = Relays()


def configuration(ttl_s: float) -> RTCConfiguration:
    """Host candidates, with a STUN server's view of them where one is set; or only the relay, where UDP is closed."""
    servers: list[RTCIceServer] = []
    if settings.RTC_FORCE_RELAY:
        servers.append(RTCIceServer(urls=relays.in_order(), **turn_credentials("server", ttl_s)))
    elif settings.ICE_SERVERS and not settings.RTC_PUBLIC_ADDRESS:
        servers.append(RTCIceServer(urls=[url for url in settings.ICE_SERVERS if url.startswith("stun:")]))
    policy = RTCIceTransportPolicy.RELAY if settings.RTC_FORCE_RELAY else RTCIceTransportPolicy.ALL
    return RTCConfiguration(iceServers=servers, iceTransportPolicy=policy, bundlePolicy=RTCBundlePolicy.BALANCED)


def ports() -> tuple[int, int] | None:
    """First and last UDP port for media; None lets the system choose."""
    if not settings.RTC_PORT_RANGE:
        return None
    first, _, last = settings.RTC_PORT_RANGE.partition("-")
    return int(first), int(last)


def why_unreachable() -> str:
    """Return why there may be no address to answer with, for operators."""
    if settings.RTC_FORCE_RELAY:
        return "no relay of TURN_URLS takes this server in"
    if settings.RTC_PUBLIC_ADDRESS:
        return "no port is free in RTC_PORT_RANGE, or no address is of the kind of RTC_PUBLIC_ADDRESS"
    return "no port is free in RTC_PORT_RANGE, or there is no network"
