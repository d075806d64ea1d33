"""`manage.py doctor`: what may be wrong with this installation, and what to do."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import socket
import time
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aiortc import RTCConfiguration, RTCIceServer, RTCIceTransportPolicy, RTCPeerConnection
from django.conf import settings
from django.core import checks
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from voiceapp import ice
from voiceapp.engines.models import providers
from voiceapp.health import process_readiness, readiness_answer
from voiceapp.realtime.media.aiortc_internals.gathering import drop_relays
from voiceapp.server.logs import mask
from voiceapp.server.work import LATE_S

MOST_SKEW_S = 2.0
WAIT_S = 5.0
"""Longest wait for another server."""
LEVELS = {checks.ERROR: "error", checks.WARNING: "warning", checks.INFO: "note"}
SECRET = re.compile("KEY|SECRET|TOKEN|PASSWORD|DSN")


class Finding(NamedTuple):
    level: str
    """`ok`, `note`, `warning` or `error`."""
    subject: str
    text: str


class Command(BaseCommand):
    help = (
        "Look at settings, weights, database, Redis, disks, ports, clocks, STUN and TURN servers and other services, "
        "and say what is wrong and what to do. Ends with 1 if something keeps the server from its work."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--bundle", type=Path, metavar="FILE", help="write all of it, without secrets, as JSON")

    def handle(self, *, bundle: Path | None, **options: Any) -> None:
        found = [each for each in checks.run_checks(include_deployment_checks=True) if not each.is_silenced()]
        findings = [
            Finding(LEVELS.get(each.level, "error"), each.id or "settings", f"{each.msg} {each.hint or ''}".strip())
            for each in found
        ] or [Finding("ok", "settings", "they go together.")]
        known = asyncio.run(_examine(findings))
        for level, subject, text in findings:
            self.stdout.write(f"{level:7} {subject}: {text}")
        if bundle:
            told = {
                "version": settings.VERSION,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "findings": [finding._asdict() for finding in findings],
                "readyz": known,
                "settings": {name: value for name in dir(settings) if (value := _shown(name)) is not None},
                "packages": {each.name: each.version for each in metadata.distributions()},
            }
            bundle.touch(0o600)
            bundle.write_text(mask(json.dumps(told, indent=1)))
            self.stdout.write(f"Written to {bundle}. Read it before you pass it on.")
        if count := sum(finding.level == "error" for finding in findings):
            raise CommandError(f"{count} {'thing needs' if count == 1 else 'things need'} you.")


async def _examine(findings: list[Finding]) -> dict[str, Any]:
    """Add what is found of this machine and of other servers; return what `/readyz` says to operators."""

    def add(level: str, subject: str, text: str) -> None:
        findings.append(Finding(level, subject, text))

    await providers.probe_services()
    _, known = await readiness_answer(process_readiness(), for_operators=True)
    await providers.close()
    if known["status"] == "ready":
        add("ok", "readiness", "weights, database and disks let conversations begin.")
    for reason in known.get("reasons", ()):
        add("error", reason["code"], reason["message"])
    for service in known.get("services", ()):
        add("ok" if service["reachable"] else "error", service["name"], service["message"])
    for queue, seconds in known.get("oldest_due_s", {}).items():
        add("warning" if seconds > LATE_S else "note", queue, f"the oldest that is due waits for {seconds:.0f} s.")
    for subject, seconds in (("database", await asyncio.to_thread(_database_time)), ("Redis", await _redis_time())):
        if isinstance(seconds, str):
            add("error", subject, seconds)
        elif seconds and abs(skew_s := time.time() - seconds) > MOST_SKEW_S:
            add("warning", subject, f"its clock and ours are {abs(skew_s):.0f} s apart: both should follow NTP.")
        elif seconds:
            add("ok", subject, "its clock agrees with ours.")
    add(*_port("PORT", settings.PORT, socket.SOCK_STREAM))
    if settings.AOQ_PORT:
        add(*_port("AOQ_PORT", settings.AOQ_PORT, socket.SOCK_DGRAM))
    if not ice.available():
        add("note", "WebRTC", "it is off: browsers talk over the WebSocket.")
    for name, kind, policy in (
        ("ICE_SERVERS", "srflx", RTCIceTransportPolicy.ALL),
        ("TURN_URLS", "relay", RTCIceTransportPolicy.RELAY),
    ):
        for url in getattr(settings, name) if ice.available() else ():
            server = RTCIceServer(urls=url, **(ice.turn_credentials("doctor", WAIT_S) if kind == "relay" else {}))
            if kind in await _candidates(RTCConfiguration(iceServers=[server], iceTransportPolicy=policy)):
                add("ok", name, f"{url} answers.")
            else:
                add("error", name, f"{url} does not answer as it should: look at it, its secret and firewalls.")
    return known


def _database_time() -> float | None:
    """Time of a PostgreSQL server in Unix seconds; None where there is none, or readiness has said that it is away."""
    if connection.vendor != "postgresql":
        return None
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
            return float(cursor.fetchone()[0])
    except DatabaseError:
        return None
    finally:
        connection.close()


async def _redis_time() -> float | str | None:
    """Time of the Redis in Unix seconds, or why it cannot be told; None without one."""
    if not settings.REDIS_URL:
        return None
    try:
        from redis.asyncio import Redis
        from redis.exceptions import RedisError
    except ImportError:
        return "its package is not installed."
    try:
        async with Redis.from_url(settings.REDIS_URL, socket_timeout=WAIT_S, socket_connect_timeout=WAIT_S) as redis:
            return float((await redis.time())[0])
    except (RedisError, OSError, ValueError) as error:
        return f"it does not answer ({type(error).__name__}): look at REDIS_URL and its server."


def _port(name: str, port: int, kind: socket.SocketKind) -> Finding:
    protocol = "TCP" if kind == socket.SOCK_STREAM else "UDP"
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return Finding("error", name, f"this user may not listen on {protocol} port {port}: take one above 1023.")
        except OSError:
            return Finding("note", name, f"{protocol} port {port} is in use, which is right while the server runs.")
    return Finding("ok", name, f"{protocol} port {port} is free.")


async def _candidates(configuration: RTCConfiguration) -> set[str]:
    """Kinds of the candidates that are gathered with some STUN and TURN servers."""
    peer = RTCPeerConnection(configuration)
    peer.createDataChannel("doctor")
    try:
        async with asyncio.timeout(WAIT_S):
            await peer.setLocalDescription(await peer.createOffer())
        return set(re.findall(r"a=candidate:.* typ (\w+)", peer.localDescription.sdp))
    except (TimeoutError, OSError, ValueError):
        return set()
    finally:
        drop_relays(peer)
        await peer.close()


def _shown(name: str) -> Any:
    """Return a setting as others may see it; None for what is no plain value."""
    value = getattr(settings, name) if name.isupper() and settings.is_overridden(name) else None
    if isinstance(value, Path):
        value = os.fspath(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return ("***" if value else "") if SECRET.search(name) else _without_user(value)
    if not isinstance(value, list) or SECRET.search(name) or not all(isinstance(each, str) for each in value):
        return None
    return [_without_user(each) for each in value]


def _without_user(text: str) -> str:
    """An address without user, path and query; other text as it is."""
    parts = urlsplit(text)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if "://" in text else text
