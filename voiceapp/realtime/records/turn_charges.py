"""Charges of a session, turn by turn, within the budget of its key.

Before each response so much is set aside of the key's monthly budget as a usual turn costs; when the turn has ended,
what it used is written into the ledger in its place. A response is not begun before the turn ahead of it is in the
ledger. Several sessions of one key can therefore spend more than the budget together by at most one turn each: by what
the last turn of each used beyond what was set aside for it. Callers without a budget wait for nothing. Nothing is
set aside for a turn without a response, as of a session that only transcribes: it ends after the turn that uses up the
budget.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from django.db import Error as DatabaseFailure

from voiceapp.accounts.caller import Caller
from voiceapp.accounts.charges import Charge, charge, has_price, require_budget
from voiceapp.accounts.ledger import Quantities
from voiceapp.catalogue.lookup import catalogue
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.engines.interfaces import NextResponse
from voiceapp.errors import AccessDenied, Throttled
from voiceapp.protocol.work import TurnEnded

logger = logging.getLogger(__name__)

LAST_WORDS = (
    "The budget of this API key for this month is used up, so this conversation ends here. "
    "Please ask the operator of this server."
)
"""Reply to a caller whose budget is used up."""
USUAL_REPLY_S = 30
"""Set aside for the audio of a reply, whose length only its end shows."""
USUAL_REPLY_TOKENS = 512
"""Set aside for the words of a reply, unless the session limits them to fewer."""
BYTES_PER_TOKEN = 4
"""Bytes of a token of English text."""
RESERVE_S = 2.0
"""Longest wait for the database before a response."""
MOST_UNWRITTEN = 128
"""Turns that wait for the database; further ones are added to the last of them."""


class TurnCharges:
    """The charges of one session. All methods belong to the event loop's thread."""

    def __init__(self, caller: Caller, model: str, session_id: str) -> None:
        self._caller = caller
        self.model = model
        self.agent = ""
        """Name and version of the agent that answers, such as `desk@3`."""
        self._session_id = session_id
        self._reserved: dict[int, Charge] = {}
        """Charges by ordinal, of turns whose responses may begin and which have not ended."""
        self._refused: set[int] = set()
        """Ordinals of turns that got the last words in place of a reply."""
        self._ended: set[int] = set()
        self._unwritten: list[Charge] = []
        """Turns that have ended and are not in the ledger, oldest first."""
        self._writing = asyncio.Lock()
        self._none_reserved = asyncio.Event()
        self._none_reserved.set()
        self._left_nano: int | None = None
        """The rest of the budget when it was last read, less what this session has used since."""
        self._used_up = asyncio.Event()
        self._asks_for_budget = False
        """A turn has ended that was not asked for before."""

    @property
    def before_response(self) -> Callable[[NextResponse], Awaitable[str]] | None:
        """See `Call.before_response`; None for a caller whom no budget holds back."""
        is_free = self._caller.monthly_budget_nano is None or not has_price(self.model, "realtime")
        return None if is_free else self._before_response

    @asynccontextmanager
    async def speech(self, response_id: str) -> AsyncIterator[Charge]:
        """Around one response that reads text aloud; see `Call.charge`.

        Raises:
            AccessDenied: if the key's budget does not allow it; the session ends then.
            Throttled: if a rate or quota is used up.
        """
        model = catalogue().get(self.model, "tts").name
        try:
            async with charge(
                self._caller, operation="speech", model=model, family="tts", request_id=response_id
            ) as meter:
                yield meter
        except AccessDenied:
            self._used_up.set()
            raise

    async def used_up(self) -> None:
        """Return when the budget does not allow the session to go on."""
        await self._used_up.wait()

    def ended(self, turn: TurnEnded) -> None:
        """Take what a turn used; returns at once. A turn that is told again changes its words, not what it used."""
        if turn.ordinal in self._ended:
            return
        self._ended.add(turn.ordinal)
        if turn.ordinal in self._refused:
            return
        charge = self._reserved.pop(turn.ordinal, None)
        if charge is None:  # without a response, as of a session that only transcribes
            charge = self._charge(turn.ordinal)
            self._asks_for_budget = True
        used: Quantities = {
            "input_tokens": turn.input_tokens,
            "output_tokens": turn.output_tokens,
            "dropped_tokens": turn.dropped_tokens,
            "audio_seconds": math.ceil((turn.input_audio_ms + turn.output_audio_ms) / 1000),
        }
        with suppress(AccessDenied):  # the next response will be refused
            charge.used(**used)
        if self._left_nano is not None:
            self._left_nano -= charge.cost_nano
        if charge.is_held or len(self._unwritten) < MOST_UNWRITTEN:
            self._unwritten.append(charge)
        else:
            self._unwritten[-1].used_more(**used)
        self._look_for_reserved()

    async def write(self) -> bool:
        """Write what turns used into the ledger, oldest first; what the database does not take waits for the next call.

        Returns whether nothing waits any more. Cancelled, it may be called again.
        """
        async with self._writing:
            while self._unwritten:
                try:
                    await self._unwritten[0].settle()
                except DatabaseUnavailable:
                    logger.warning("session %s: %d turns wait for the ledger", self._session_id, len(self._unwritten))
                    return False
                except DatabaseFailure:
                    logger.exception("session %s: a turn could not be charged", self._session_id)
                self._unwritten.pop(0)
        if self._asks_for_budget:
            await self._ask_for_budget()
        return True

    async def _ask_for_budget(self) -> None:
        """End the session if nothing is left, after a turn that nothing was set aside for."""
        self._asks_for_budget = False
        try:
            await require_budget(self._caller, self.model, "realtime", asks_anew=True)
        except AccessDenied:
            logger.info("session %s: the budget of its key is used up", self._session_id)
            self._used_up.set()
        except (DatabaseUnavailable, DatabaseFailure):
            self._asks_for_budget = True

    async def finish(self) -> bool:
        """Write what still waits, and give back what is set aside for a turn that will not end; as `write`."""
        self._unwritten.extend(self._reserved.values())
        self._reserved.clear()
        return await self.write()

    async def _before_response(self, response: NextResponse) -> str:
        if self._used_up.is_set():
            return self._refuse(response.ordinal)
        charge = self._charge(response.ordinal)
        try:
            async with asyncio.timeout(RESERVE_S):
                await self._none_reserved.wait()
                await self.write()
                self._reserve(response.ordinal, charge)
                await charge.reserve(asks_anew=True, **_most(response))
        except (AccessDenied, Throttled):
            return self._refuse(response.ordinal)
        except (TimeoutError, DatabaseUnavailable, DatabaseFailure):
            # Sessions outlast the database: this one goes on within what was left, or for one turn.
            self._reserve(response.ordinal, charge)
            is_first = self._left_nano is None and not self._ended
            return "" if is_first or (self._left_nano or 0) > 0 else self._refuse(response.ordinal)
        if not self._unwritten:
            self._left_nano = charge.left_nano
        return ""

    def _reserve(self, ordinal: int, charge: Charge) -> None:
        self._reserved[ordinal] = charge
        self._look_for_reserved()

    def _look_for_reserved(self) -> None:
        if self._reserved:
            self._none_reserved.clear()
        else:
            self._none_reserved.set()

    def _refuse(self, ordinal: int) -> str:
        """Return the reply to a caller whose budget is used up."""
        self._refused.add(ordinal)
        if (unused := self._reserved.pop(ordinal, None)) is not None:
            self._unwritten.append(unused)
        self._look_for_reserved()
        if not self._used_up.is_set():
            logger.info("session %s: the budget of its key is used up", self._session_id)
            self._used_up.set()
        return LAST_WORDS

    def _charge(self, ordinal: int) -> Charge:
        return Charge(
            self._caller,
            operation="realtime",
            model=self.model,
            family="realtime",
            request_id=f"{self._session_id}:{ordinal}",
            agent=self.agent,
        )


def forwarded_charge(caller: Caller, model: str, session_id: str) -> AbstractAsyncContextManager[Charge]:
    """Around passing an offer on: of a call that another service holds, this server knows only that it began."""
    return charge(caller, operation="realtime", model=model, family="realtime", request_id=session_id, conversations=1)


def _most(response: NextResponse) -> Quantities:
    """Return the most that a turn is expected to use."""
    reply_s = USUAL_REPLY_S if response.speaks else 0
    return {
        "input_tokens": -(-response.input_bytes // BYTES_PER_TOKEN),
        "output_tokens": min(response.max_tokens or USUAL_REPLY_TOKENS, USUAL_REPLY_TOKENS),
        "audio_seconds": math.ceil(response.input_audio_ms / 1000) + reply_s,
    }
