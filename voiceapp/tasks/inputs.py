"""What a task is given by address: fetched by the guarded client, read line by line."""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.bookkeeper import BooksClosed, on_the_books
from voiceapp.errors import InvalidParameter, Throttled, VoiceError
from voiceapp.outbound import AddressNotAllowed, FetchFailed, Outbound, ResponseTooLarge, allows, check_url
from voiceapp.schemas import UNWRITABLE, is_clean
from voiceapp.tasks.kinds import Part
from voiceapp.tasks.uploads import SCHEME, require_all

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

FETCH_S = 600.0
"""How long fetching one file may take."""
MAX_LINES_BYTES = 50_000_000
MAX_LINES = 50_000
MAX_LINE_BYTES = 256 * 1024
AT_ONCE = 4
"""Lines of one file that are worked on at once: a model served elsewhere answers several in parallel."""
MOST_WAITS = 60
"""How often a line waits for room before it counts as refused."""
FAULT = "The server failed on this line; its log says why under the task's id."


def holes() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Networks that are no public ones and from which files may be fetched."""
    return [ipaddress.ip_network(network) for network in settings.FETCH_ALLOWED_NETWORKS]


async def check_sources(caller: Caller, urls: Iterable[str]) -> None:
    """What can be said of addresses at once; the guarded client says the rest when it fetches.

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
        await on_the_books(require_all, caller.account_id, uploaded)


def _check_url(url: str) -> None:
    """
    Raises:
        InvalidParameter: if nothing can be fetched from there.
    """
    host = check_url(url).hostname or ""
    try:
        is_allowed = allows(host, holes())
    except ValueError:  # a name
        return
    if not is_allowed:
        raise AddressNotAllowed(f"{host[:100]} is no public address; FETCH_ALLOWED_NETWORKS opens networks for it.")


async def fetched(part: Part, url: str, *, max_bytes: int, of_server: str = "") -> Path:
    """Fetch a file into the part's folder; an upload comes out of the storage.

    `of_server` is the address of a server that the operator named, and that gave this address: what lies there is
    fetched, whichever network that is.

    Raises:
        InvalidParameter, FetchFailed: if the address is refused, silent, or gives more than `max_bytes`.
        NotFound: if the upload is not there any more.
    """
    target = part.folder / f"input-{secrets.token_hex(4)}"
    if url.startswith(SCHEME):
        (await part.open(url)).rename(target)
        if target.stat().st_size > max_bytes:
            raise ResponseTooLarge(f"The file is larger than {max_bytes / 1_000_000:g} MB.")
        return target
    with part.aside():
        async with Outbound(holes=[*holes(), *await networks_of(url, of_server)]) as client:
            await client.download(url, to=target, max_bytes=max_bytes, total_s=FETCH_S)
    return target


async def networks_of(url: str, server: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The addresses of a server, if it is the one that a file lies on.

    Raises:
        FetchFailed: if its name is not known.
    """
    there, named = urlsplit(url), urlsplit(server)
    if not named.hostname or (there.scheme, there.netloc) != (named.scheme, named.netloc):
        return []
    try:
        found = await asyncio.get_running_loop().getaddrinfo(named.hostname, named.port, type=socket.SOCK_STREAM)
    except OSError:
        raise FetchFailed(f"{named.hostname[:100]} could not be reached.") from None
    return [ipaddress.ip_network(str(entry[4][0]).partition("%")[0]) for entry in found]


async def with_patience(call: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a call that is made again while there is no room for it: nobody waits at the other end.

    Raises:
        VoiceError: what the call raises, a full lane or a reached rate only after many tries.
    """
    waits = 0
    while True:
        try:
            return await call()
        except BooksClosed:  # no fault of the work: it pauses until the database answers, or its time is over
            wait_s = 1.0
        except VoiceError as error:
            if error.code not in ("Throttling.Concurrency", "Throttling.RateQuota") or waits == MOST_WAITS:
                raise
            waits += 1
            wait_s = error.retry_after_s if isinstance(error, Throttled) else 1.0
        await asyncio.sleep(wait_s)


def lines_of(path: Path) -> Iterator[bytes]:
    """Lines that hold something; of one that is longer than `MAX_LINE_BYTES`, its beginning and one byte more.

    Raises:
        InvalidParameter: if there are too many.
    """
    count = 0
    with path.open("rb") as source:
        if source.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            source.seek(0)
        while line := source.readline(MAX_LINE_BYTES + 1):
            rest = line
            while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
                rest = source.readline(MAX_LINE_BYTES + 1)
            if len(line) <= MAX_LINE_BYTES and not line.strip():
                continue
            count += 1
            if count > MAX_LINES:
                raise InvalidParameter(f"The file has more than {MAX_LINES} lines.")
            yield line


async def answered(
    part: Part,
    path: Path,
    read: Callable[[bytes], Value],
    answer: Callable[[int, Value], Awaitable[Mapping[str, Any]]],
) -> AsyncIterator[Mapping[str, Any]]:
    """The answer to each line of a file, in order. What is refused becomes `{"error": {"code", "message"}}`.

    Each has the number of its line, from 0 and without empty ones, and the `custom_id` that its line names.

    Raises:
        InvalidParameter: if the file has no lines, or too many.
        VoiceError: at the end, the refusal of the first line, if every line was refused.
    """
    total = await asyncio.to_thread(lambda: sum(1 for _ in lines_of(path)))
    if not total:
        raise InvalidParameter("The file holds no lines.")

    async def one(number: int, line: bytes) -> Mapping[str, Any]:
        known: dict[str, Any] = {"line": number}
        try:
            if len(line) > MAX_LINE_BYTES:
                raise InvalidParameter(f"The line is longer than {MAX_LINE_BYTES} bytes.")
            value = read(line)
            known |= _name(value)
            return {**known, **await with_patience(lambda: answer(number, value))}
        except VoiceError as error:
            refusal = error
        except Exception:
            logger.exception("task %s, line %d failed in a way nobody foresaw", part.task_id, number)
            refusal = VoiceError(FAULT)
        refusals[number] = refusal
        return {**known, "error": {"code": refusal.code, "message": refusal.message}}

    lines = lines_of(path)
    done = 0
    refusals: dict[int, VoiceError] = {}
    while some := [line for _, line in zip(range(AT_ONCE), lines, strict=False)]:
        for found in await asyncio.gather(*(one(done + number, line) for number, line in enumerate(some))):
            yield found
        done += len(some)
        part.progress(done / total)
    if len(refusals) == total:
        raise refusals[0]


def _name(value: object) -> dict[str, str | int]:
    """The `custom_id` by which whoever sent a line knows it again."""
    name = value.get("custom_id") if isinstance(value, dict) else None
    return {"custom_id": name} if isinstance(name, str | int) else {}


def read_text(line: bytes) -> str:
    """
    Raises:
        InvalidParameter: if the line is no text.
    """
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidParameter("The line is not UTF-8.") from None
    if UNWRITABLE.search(text):
        raise InvalidParameter("The line holds a NUL character.")
    return text


def read_json(line: bytes) -> dict[str, Any]:
    """
    Raises:
        InvalidParameter: if the line is no JSON object, or holds what cannot be written.
    """
    try:
        value = json.loads(line)
        clean = is_clean(value)
    except (ValueError, RecursionError):
        raise InvalidParameter("The line is not JSON.") from None
    if not isinstance(value, dict):
        raise InvalidParameter("The line is not a JSON object.")
    if not clean:
        raise InvalidParameter("The line holds a NUL character or half of a surrogate pair.")
    return value
