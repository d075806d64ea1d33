"""The sessions at a service elsewhere that one conversation has, one after the other."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from voiceapp.engines.upstream.realtime.connection import EventLine, LineLost
from voiceapp.engines.upstream.realtime.opening import begin
from voiceapp.errors import EngineError
from voiceapp.protocol.forwarded.replay import KeptAudio, KeptConversation

logger = logging.getLogger(__name__)

RENEW_S = 10.0
"""How long a lost session is tried to be begun again."""
PAUSE_S = 0.5
"""Between two attempts."""
AGAIN_S = 30.0
"""When a session that should end soon, and could not be begun anew, is tried again."""


class ServiceLines:
    """The line in use, and its replacement. `receive`, `renew` and `replace` belong to one task."""

    def __init__(
        self, name: str, dial: Callable[[], Awaitable[EventLine]], kept: KeptConversation, *, limit_s: float
    ) -> None:
        """`name` is that of the session here, for logs; `limit_s` is how long one there may last, 0: any time."""
        self._name = name
        self._dial = dial
        self._kept = kept
        self.audio = KeptAudio()
        """What a new session has to hear of the caller's."""
        self._limit_s = limit_s
        self._now = asyncio.get_running_loop().time
        self._line: EventLine | None = None
        self._ready = asyncio.Event()
        """The line can be written to."""
        self._renewals = 0
        """How often a new session was told what the one before had not answered."""
        self.began_ms = 0.0
        """Where the session there begins, in all audio of the caller's."""
        self._due_at: float | None = None
        self.is_due = False
        """The session there has to be replaced, at the next silence."""

    async def open(self) -> dict[str, Any]:
        """Begin the first session; its `session.created`.

        Raises:
            EngineError: if the service cannot be reached, or refuses it.
        """
        try:
            line, created = await begin(await self._dial(), self._kept.settings, ())
        except LineLost as lost:
            raise lost.failure from None
        await self._use(line)
        return created

    async def send(self, text: str) -> None:
        """Send a message of the caller's; one that a line is lost over is sent over the next one."""
        while True:
            await self._ready.wait()
            line = self._line
            assert line is not None
            try:
                await line.send(text)
            except LineLost:
                if line is self._line:
                    self._ready.clear()  # whoever receives notices the loss too, and has another line or gives up
            else:
                return

    async def ask(self, wire: dict[str, Any]) -> None:
        """Send a message of the caller's that the service answers; one without an answer is in time sent again."""
        self._kept.sent(wire)
        number = self._renewals
        await self._ready.wait()
        if number == self._renewals:  # otherwise the new session was asked when it began
            await self.tell(wire)

    async def tell(self, wire: dict[str, Any]) -> None:
        """Send a message of our own, which another session would have no use for."""
        assert self._line is not None
        with suppress(LineLost):
            await self._line.send(json.dumps(wire))

    async def receive(self) -> str:
        """The next message; empty when the session has become due, or a new one is in its place.

        Raises:
            LineLost: the connection is closed.
        """
        assert self._line is not None
        try:
            if self._due_at is None:
                return await self._line.receive()
            async with asyncio.timeout_at(self._due_at):
                return await self._line.receive()
        except TimeoutError:
            self.is_due, self._due_at = True, None
            return ""
        except LineLost:
            self._ready.clear()
            raise

    async def renew(self, failure: EngineError) -> None:
        """Begin a new session in the place of a lost one; `failure` says what became of that.

        Raises:
            EngineError: if that does not succeed in time, or the service refuses it.
        """
        until = self._now() + RENEW_S
        while True:
            try:
                await self._use(await self._begin_again())
            except LineLost:
                error = failure
            except EngineError as refused:
                error = refused
            else:
                return
            if not error.retryable or self._now() > until:
                raise error
            await asyncio.sleep(PAUSE_S)

    def put_off(self, for_s: float) -> None:
        """Have the session that is due become so again later."""
        self.is_due, self._due_at = False, self._now() + for_s

    async def replace(self) -> None:
        """Begin a new session, and leave the one that is still open; if that fails, go on with it for a while."""
        self._ready.clear()
        try:
            line = await self._begin_again()
        except (EngineError, LineLost) as error:
            logger.warning("session %s: no new session at the service: %s", self._name, error)
            self.is_due, self._due_at = False, self._now() + AGAIN_S
            self._ready.set()
        else:
            await self._use(line)

    async def close(self) -> None:
        """Close the line in use."""
        self._ready.clear()
        if self._line is not None:
            await self._line.close()

    async def _begin_again(self) -> EventLine:
        line, _ = await begin(await self._dial(), self._kept.settings, self._kept.items())
        await self._catch_up(line)
        return line

    async def _use(self, line: EventLine) -> None:
        """Have this line in use; the one before is closed."""
        before, self._line = self._line, line
        self.began_ms = self.audio.begins_ms
        self._due_at = self._now() + self._limit_s if self._limit_s else None
        self.is_due = False
        self._ready.set()
        if before is not None:
            await before.close()

    async def _catch_up(self, line: EventLine) -> None:
        """Tell a new session what the one before had not answered, and what the caller says."""
        self._renewals += 1
        try:
            for message in (*map(json.dumps, self._kept.unanswered), *self.audio.messages()):
                await line.send(message)
        except BaseException:
            await line.close()
            raise
        logger.info("session %s: goes on in a new session at the service", self._name)
