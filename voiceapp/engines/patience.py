"""Deadlines of a chat model's reply, and what is done at each of them.

    from the request  1.5 s  a filler is spoken, such as "Let me see"; then in its turn that it takes longer
                      4 s    the next model of a chain is asked beside it (`models.fallback`)
                      10 s   the wait is given up; 30 s where there is a sign of life, such as reasoning
    between words     3 s    the rest is asked for once
    after words       1.5 s  what there is is spoken up to a word, when the listener would run dry

All of them follow from `CHAT_FIRST_WORD_S`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from enum import Enum, auto

from django.conf import settings

from voiceapp.engines.interfaces import ChatDelta
from voiceapp.errors import EngineTimeout


class WaitStep(Enum):
    """Steps that are taken while no words come."""

    FILL = auto()
    TELL = auto()
    """Say that it takes longer."""
    SPEAK = auto()
    """Speak the words that there are."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """In seconds; see above."""

    first_word_s: float
    filler_s: float
    told_s: float
    beside_s: float
    thinking_s: float
    between_s: float
    gathering_s: float


def deadlines() -> Deadlines:
    first_s: float = settings.CHAT_FIRST_WORD_S
    soon_s = min(1.5, 0.15 * first_s)
    filler_s = soon_s if settings.CHAT_FILLERS else math.inf
    return Deadlines(
        first_s, filler_s, min(7, 0.7 * first_s), min(4, 0.4 * first_s), 3 * first_s, 0.3 * first_s, soon_s
    )


class ReplyPatience:
    """With one reply. No I/O and no clock."""

    def __init__(self, limits: Deadlines, *, speaks: bool, may_call: bool, speak_at: Callable[[], float]) -> None:
        """With `may_call` a pause between words may be a function call, which some servers send when it is whole.
        `speak_at` says when the listener has waited long enough for the words that there are; infinite without any."""
        self._limits = limits
        self._fills = speaks and limits.filler_s < math.inf
        self._between_s = limits.first_word_s if may_call else limits.between_s
        self._speak_at = speak_at
        self._began = self._since = math.inf
        self._asides = 0
        self._is_alive = self._has_words = False

    def begin(self, now: float) -> None:
        """The caller waits from now on."""
        self._began = now

    def wait(self, now: float) -> None:
        """The next piece of the reply is waited for."""
        self._since = now

    def heard(self, delta: ChatDelta) -> None:
        """A piece of the reply came."""
        self._has_words = self._has_words or delta.has_words
        self._is_alive = self._is_alive or bool(delta.reasoning) or delta.is_waiting

    def due(self) -> float:
        """Time of the next step."""
        return min(self._ends_at, self._speak_at() if self._has_words else self._aside_at)

    def step(self, now: float) -> WaitStep:
        """Take the step that is due.

        Raises:
            EngineTimeout: if it is to wait no longer.
        """
        if now >= self._ends_at:
            waited = "stopped in the middle of its reply" if self._has_words else "did not begin its reply in time"
            raise EngineTimeout(f"The language model {waited}.")
        if self._has_words:
            return WaitStep.SPEAK
        self._asides += 1
        return WaitStep.FILL if self._asides == 1 else WaitStep.TELL

    @property
    def _ends_at(self) -> float:
        if self._has_words:
            return self._since + self._between_s
        return self._began + (self._limits.thinking_s if self._is_alive else self._limits.first_word_s)

    @property
    def _aside_at(self) -> float:
        if not self._fills:
            return math.inf
        return self._began + (self._asides * self._limits.told_s if self._asides else self._limits.filler_s)


async def attended(
    deltas: AsyncGenerator[ChatDelta, None], patience: ReplyPatience, wanted: asyncio.Event
) -> AsyncGenerator[ChatDelta | WaitStep, None]:
    """The pieces of a reply, and what is to be done while none comes; deadlines count from when it is `wanted`.

    Raises:
        EngineTimeout: if it is waited for no longer.
        EngineError: if the model fails.
    """
    pending: asyncio.Future[ChatDelta | None] | None = None
    is_wanted: asyncio.Future[bool] | None = None
    try:
        while True:
            if pending is None:
                patience.wait(time.monotonic())
                pending = asyncio.ensure_future(anext(deltas, None))
            if is_wanted is None or not is_wanted.done():
                is_wanted = is_wanted or asyncio.ensure_future(wanted.wait())
                await asyncio.wait((pending, is_wanted), return_when=asyncio.FIRST_COMPLETED)
                if is_wanted.done():
                    patience.begin(time.monotonic())
                    patience.wait(time.monotonic())
            else:
                await asyncio.wait((pending,), timeout=max(0.0, patience.due() - time.monotonic()))
            if pending.done():
                delta, pending = pending.result(), None
                if delta is None:
                    return
                patience.heard(delta)
                yield delta
            elif is_wanted.done() and (now := time.monotonic()) >= patience.due():
                yield patience.step(now)
    finally:
        for task in (pending, is_wanted):
            if task is not None and task.cancel():
                await asyncio.wait((task,))
        await deltas.aclose()
