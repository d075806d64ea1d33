"""Calls of OpenAI's clients by their names: servers join them and hang them up, while sound flows to the client.

A name says where the call is held: by a process of this host, which listens for the others, or by another service.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from typing import Protocol

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from voiceapp.accounts.caller import Caller
from voiceapp.errors import AccessDenied, NotFound, Throttled
from voiceapp.event_loops import per_loop
from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect
from voiceapp.protocol.openai_realtime.settings import REALTIME, TRANSCRIPTION
from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.close_codes import FLOOD, NORMAL
from voiceapp.realtime.lifetime.processes import own_name
from voiceapp.realtime.transports.interface import Disconnected, texts_of
from voiceapp.realtime.transports.webrtc import WebRtcTransport

logger = logging.getLogger(__name__)

MOST_JOINED = 4
"""Connections that may have joined one call."""
WAITING_BYTES = 1024 * 1024
"""Largest text between processes, and all that may wait for a connection that reads slowly."""
PACE_S = 0.02
ANSWER_S = 5.0
_SALT = "voiceapp.realtime.calls"
_FORM = re.compile(r"(sess_[\w-]+)\.([ps])-([\w.-]{1,200})\.([0-9a-f]{32})", re.ASCII)
_THERE = re.compile(r"[\w.-]{1,200}", re.ASCII)
_GONE = "There is no such call any more, or another host holds it."


class Side(Protocol):
    """One side of what carries a joined connection's events."""

    async def hear(self) -> str:
        """The next event, as JSON in one line.

        Raises:
            Disconnected: there are no more.
            ConnectionError: the same.
        """

    async def say(self, text: str) -> None:
        """Pass an event on.

        Raises:
            Disconnected: nothing can be passed on any more.
        """


async def carry(*sides: Side, until: Callable[[], Awaitable[Disconnected]] | None = None) -> int:
    """Pass events between two sides until one ends, or what `until` returns; returns the close code."""
    one, other = sides
    code = NORMAL

    async def pump(source: Side, sink: Side) -> None:
        while True:
            await sink.say(await source.hear())

    async def watch(end: Callable[[], Awaitable[Disconnected]]) -> None:
        raise await end()

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pump(one, other))
            tasks.create_task(pump(other, one))
            if until is not None:
                tasks.create_task(watch(until))
    except* Disconnected as group:
        found = group.exceptions[0]
        code = found.code if isinstance(found, Disconnected) else NORMAL
    except* ConnectionError:
        pass
    return code


# ── Held by this process ─────────────────────────────────────────────────────────────────────────────────────────────


class _Joined:
    """A connection that has joined a call of this process, as a `Side`."""

    def __init__(self, call: JoinableCall) -> None:
        self._call = call
        self._waiting: asyncio.Queue[str | Disconnected] = asyncio.Queue()
        self._waiting_bytes = 0

    async def hear(self) -> str:
        arrival = await self._waiting.get()
        if isinstance(arrival, Disconnected):
            raise arrival
        self._waiting_bytes -= len(arrival)
        return arrival

    async def say(self, text: str) -> None:
        await self._call.told(text)

    def put(self, text: str) -> None:
        if self._waiting_bytes + len(text) > WAITING_BYTES:
            self.end(FLOOD)
        else:
            self._waiting_bytes += len(text)
            self._waiting.put_nowait(text)

    def end(self, code: int) -> None:
        self._call.leave(self)
        self._waiting.put_nowait(Disconnected(code))

    async def aclose(self) -> None:
        self._call.leave(self)


class JoinableCall:
    """A call as the `Transport` of its session. What its caller is told, those who joined are told as well."""

    def __init__(self, transport: WebRtcTransport, account_id: int, *, listens_only: bool) -> None:
        self.account_id = account_id
        self._transport = transport
        self._dialect = OpenAIRealtimeDialect(kind=TRANSCRIPTION if listens_only else REALTIME, has_track=True)
        self._joined: set[_Joined] = set()
        self._pace = asyncio.Lock()
        self._session: dict[str, object] = {}
        """The session as it was shown last."""
        self.receive = transport.receive
        self.cut_playout = transport.cut_playout
        self.close = transport.close
        self.hang_up = transport.leave

    def join(self) -> _Joined:
        """Another connection.

        Raises:
            Throttled: if there are enough of them.
        """
        if len(self._joined) >= MOST_JOINED:
            raise Throttled(f"{MOST_JOINED} connections have joined this call already.", code="Throttling.Concurrency")
        self._joined.add(joined := _Joined(self))
        if self._session:
            joined.put(json.dumps({**self._session, "type": ev.SessionCreated.type}))
        return joined

    def leave(self, joined: _Joined) -> None:
        self._joined.discard(joined)

    async def told(self, text: str) -> None:
        """An event of a connection that joined. Too many at once would end the call: they wait."""
        async with self._pace:
            await self._transport.message(text)
            await asyncio.sleep(PACE_S)

    async def send(self, event: ev.ServerEvent) -> None:
        for text in texts_of(event, self._dialect):
            if isinstance(event, ev.SessionCreated | ev.SessionUpdated):
                self._session = json.loads(text)
            for joined in tuple(self._joined):
                joined.put(text)
        await self._transport.send(event)

    def over(self) -> None:
        for joined in tuple(self._joined):
            joined.end(NORMAL)


class Calls:
    """The calls of this process. Belongs to one event loop."""

    def __init__(self) -> None:
        self._calls: dict[str, JoinableCall] = {}
        self._server: asyncio.Server | None = None
        self._starting = asyncio.Lock()

    async def listen(self) -> None:
        """Let other processes of this host find the calls of this one."""
        async with self._starting:
            if self._server is None and sys.platform == "linux":
                try:
                    self._server = await asyncio.start_unix_server(
                        self._serve, _address(own_tag()), limit=WAITING_BYTES
                    )
                except OSError as error:
                    logger.warning("Other processes cannot join calls of this one: %s", error)

    def begin(self, session_id: str, call: JoinableCall) -> JoinableCall:
        """Let others find a call until it is over."""
        self._calls[session_id] = call
        return call

    def over(self, session_id: str) -> None:
        self._calls.pop(session_id).over()

    def find(self, session_id: str, account_id: int) -> JoinableCall:
        """A call of an account.

        Raises:
            NotFound: if it has none of this name.
        """
        call = self._calls.get(session_id)
        if call is None or call.account_id != account_id:
            raise NotFound(_GONE)
        return call

    def close(self) -> None:
        """Be found no more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Another process of this installation asks about a call."""
        line = _ProcessConnection(reader, writer)
        if not line.is_of_this_user:
            writer.close()
            return
        with suppress(Disconnected, signing.BadSignature, TimeoutError, NotFound, Throttled):
            try:
                async with asyncio.timeout(ANSWER_S):
                    session_id, account_id, joins = signing.loads(await line.hear(), salt=_SALT, max_age=ANSWER_S)
                call = self.find(session_id, account_id)
                if joins:
                    async with aclosing(call.join()) as joined:
                        await line.say("ok")
                        await carry(line, joined)
                else:
                    call.hang_up()
                    await line.say("ok")
            finally:
                writer.close()


calls = per_loop(Calls)


# ── Held by another process of this host ─────────────────────────────────────────────────────────────────────────────


def own_tag() -> str:
    """Tag by which other processes of this host reach this one."""
    return hashlib.sha256(own_name().encode()).hexdigest()[:32]


def _address(tag: str) -> str:
    return f"\0voiceapp-{tag}"  # unix(7): an abstract name, which leaves no file behind


_PEER = struct.Struct("3i")
"""Process, user and group of a peer (unix(7), SO_PEERCRED)."""


class _ProcessConnection:
    """A connection between two processes as a `Side`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def is_of_this_user(self) -> bool:
        """True if the process at the other end runs as the same user: any process may take or call an abstract name."""
        peer = self._writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        _, user_id, _ = _PEER.unpack(peer)
        return bool(user_id == os.getuid())

    async def hear(self) -> str:
        try:
            line = await self._reader.readline()
        except (OSError, ValueError):  # lost, or longer than the limit
            line = b""
        if not line.endswith(b"\n"):
            raise Disconnected(NORMAL)
        return line[:-1].decode("utf-8", "replace")

    async def say(self, text: str) -> None:
        try:
            self._writer.write(f"{text}\n".encode())
            await self._writer.drain()
        except OSError:
            raise Disconnected(NORMAL) from None

    async def aclose(self) -> None:
        self._writer.close()


async def _asked_of(tag: str, session_id: str, account_id: int, *, joins: bool) -> _ProcessConnection:
    """A connection to another process, which agrees.

    Raises:
        NotFound: if it does not, or is not there.
    """
    async with AsyncExitStack() as stack:
        with suppress(OSError, TimeoutError, Disconnected):
            async with asyncio.timeout(ANSWER_S):
                line = _ProcessConnection(*await asyncio.open_unix_connection(_address(tag), limit=WAITING_BYTES))
                stack.push_async_callback(line.aclose)
                if line.is_of_this_user:
                    await line.say(signing.dumps((session_id, account_id, joins), salt=_SALT))
                    if await line.hear() == "ok":
                        stack.pop_all()
                        return line
    raise NotFound(_GONE)


# ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CallName:
    """A name that was read."""

    session_id: str
    account_id: int
    tag: str = ""
    """Tag of the process that holds it."""
    there: str = ""
    """Its name at the service that holds it."""

    def __str__(self) -> str:
        where = f"s-{self.there}" if _THERE.fullmatch(self.there) else f"p-{self.tag or own_tag()}"
        return f"{self.session_id}.{where}.{_proof(self.account_id, self.session_id, where)}"

    async def join(self) -> _Joined | _ProcessConnection:
        """A line to a call that a process of this host holds.

        Raises:
            NotFound: if there is none.
            Throttled: if too many have joined it.
        """
        if self.tag == own_tag():
            return calls().find(self.session_id, self.account_id).join()
        return await _asked_of(self.tag, self.session_id, self.account_id, joins=True)

    async def hang_up(self) -> None:
        """End such a call.

        Raises:
            NotFound: if there is none.
        """
        if self.tag == own_tag():
            calls().find(self.session_id, self.account_id).hang_up()
        else:
            await (await _asked_of(self.tag, self.session_id, self.account_id, joins=False)).aclose()


def read_call_name(text: str, caller: Caller) -> CallName:
    """Return the place of the caller's call of this name.

    Raises:
        AccessDenied: if the key is not for realtime, or is one for a browser.
        NotFound: if it is no name of a call of the caller's account.
    """
    caller.require("realtime")
    if caller.is_temporary:
        raise AccessDenied("Calls are joined and hung up with an API key, not with a client secret.")
    found = _FORM.fullmatch(text)
    if found is None:
        raise NotFound("There is no such call.")
    session_id, kind, where, proof = found.groups()
    if not constant_time_compare(proof, _proof(caller.account_id, session_id, f"{kind}-{where}")):
        raise NotFound("There is no such call.")
    place = {"there": where} if kind == "s" else {"tag": where}
    return CallName(session_id, caller.account_id, **place)


def _proof(account_id: int, session_id: str, where: str) -> str:
    mac = salted_hmac(_SALT, f"{account_id} {session_id} {where}", algorithm="sha256")
    return str(mac.hexdigest()[:32])
