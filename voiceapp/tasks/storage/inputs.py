"""Inputs of a task that are named by address, fetched by the guarded client."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.database.thread import run_in_db_thread
from voiceapp.disk import disks
from voiceapp.outbound.addresses import AddressNotAllowed, allows, check_url
from voiceapp.outbound.client import FetchFailed, Outbound, ResponseTooLarge
from voiceapp.tasks.storage.uploads import SCHEME, require_all
from voiceapp.tasks.work.context import TaskContext

FETCH_S = 600.0
"""Time that fetching one file may take."""


def allowed_networks() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Networks that are no public ones and from which files may be fetched."""
    return [ipaddress.ip_network(network) for network in settings.FETCH_ALLOWED_NETWORKS]


async def check_sources(caller: Caller, urls: Iterable[str]) -> None:
    """Check addresses as far as possible at once; the guarded client checks the rest when it fetches.

    Raises:
        InvalidParameter: if nothing can be fetched from one of them, or it names no upload of the caller's account.
    """
    uploaded = []
    for url in urls:
        if url.startswith(SCHEME):
            uploaded.append(url)
        else:
            _check_url(url)
    if uploaded:
        await run_in_db_thread(require_all, caller.account_id, uploaded)


def _check_url(url: str) -> None:
    """Check an address before the task is accepted.

    Raises:
        InvalidParameter: if nothing can be fetched from there.
    """
    host = check_url(url).hostname or ""
    try:
        is_allowed = allows(host, allowed_networks())
    except ValueError:  # a name
        return
    if not is_allowed:
        raise AddressNotAllowed(f"{host[:100]} is no public address; FETCH_ALLOWED_NETWORKS opens networks for it.")


async def fetched(part: TaskContext, url: str, *, max_bytes: int, of_server: str = "") -> Path:
    """Fetch a file into the part's folder; an upload comes out of the storage.

    `of_server` is the address of a server that the operator named, and that gave this address: what lies there is
    fetched, whichever network that is.

    Raises:
        InvalidParameter: if the address is refused.
        FetchFailed: if the server at that address is silent, or gives more than `max_bytes`.
        NotFound: if the upload is not there any more.
        DiskFull: if too little disk space is free.
    """
    disks().require_room_in_progress()
    target = part.folder / f"input-{secrets.token_hex(4)}"
    if url.startswith(SCHEME):
        (await part.open(url)).rename(target)
        if target.stat().st_size > max_bytes:
            raise ResponseTooLarge(f"The file is larger than {max_bytes / 1_000_000:g} MB.")
        return target
    with part.waiting():
        async with Outbound(allowed_networks=[*allowed_networks(), *await networks_of(url, of_server)]) as client:
            await client.download(url, to=target, max_bytes=max_bytes, total_s=FETCH_S, progress=_require_room)
    return target


def _require_room(size: int, whole: int) -> None:
    """Check that what is still to come of a file, as far as its server says how much that is, has room on the disk.

    Raises:
        DiskFull: if it has not.
    """
    disks().require_room_in_progress(max(0, whole - size))


async def networks_of(url: str, server: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The addresses of a server, of several with commas between, if it is the one that a file lies on.

    Raises:
        FetchFailed: if its name is not known.
    """
    there = urlsplit(url)
    named = {(each.scheme, each.netloc) for each in map(urlsplit, server.replace(" ", "").split(","))}
    if not there.hostname or (there.scheme, there.netloc) not in named:
        return []
    try:
        found = await asyncio.get_running_loop().getaddrinfo(there.hostname, there.port, type=socket.SOCK_STREAM)
    except OSError:
        raise FetchFailed(f"{there.hostname[:100]} could not be reached.") from None
    return [ipaddress.ip_network(str(entry[4][0]).partition("%")[0]) for entry in found]
