"""Around every call of a model: may it begin, and what did it use.

    async with charge(caller, operation="rerank", model=…, family="rerank", reserve_tokens=n, request_id=…) as meter:
        …
        meter.used(input_tokens=n)

What was used is in the ledger when the block ends, however it ends. An answer that leaves after the block is therefore
never missing from the ledger; a door that streams calls `settle` before its last frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from django.utils import timezone

from voiceapp.accounts import quotas
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.bookkeeper import on_the_books
from voiceapp.accounts.cards import names_of
from voiceapp.accounts.ledger import Entry, cost_nano, price_nano, record
from voiceapp.accounts.quotas import Held
from voiceapp.accounts.rates import rates
from voiceapp.errors import AccessDenied

T = TypeVar("T")

INPUT, OUTPUT = "input_tokens", "output_tokens"

_unfinished: set[asyncio.Task[Any]] = set()
"""Entries whose callers went away; the event loop itself keeps no hold of its tasks."""


def require_model(caller: Caller, model: str, family: str) -> None:
    """Check that the caller's key may use a model, by its name or any alias.

    Raises:
        AccessDenied: if the key names other models and not this one.
    """
    if caller.allowed_models and not caller.allowed_models & names_of(model, family):
        raise AccessDenied(f"This API key may not be used for the model '{model[:80]}'.")


class Charge:
    """One call's account. Not shared between tasks."""

    def __init__(self, caller: Caller, *, operation: str, model: str, family: str, request_id: str) -> None:
        self._caller = caller
        self._operation = operation
        self._model = model
        self._family = family
        self._request_id = request_id
        self._quantities = {INPUT: 0, OUTPUT: 0}
        self._held: Held | None = None
        self._is_settled = False

    def used(self, *, input_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """Say what the call has used so far, in all; of several reports of one figure the last one counts.

        Raises:
            AccessDenied: if that is more than the key's budget for this month had left. What was used stays charged.
        """
        for unit, quantity in ((INPUT, input_tokens), (OUTPUT, output_tokens)):
            if quantity is not None:
                if quantity < 0:
                    raise ValueError(f"{quantity} {unit} cannot be.")
                self._quantities[unit] = quantity
        left_nano = None if self._held is None else self._held.left_nano
        if left_nano is not None and cost_nano(self._model, self._family, self._quantities) > left_nano:
            raise AccessDenied("This API key's budget for this month is used up. Ask an operator.")

    async def settle(self) -> None:
        """Write the ledger and settle quota and budget now; what is reported later does not count.

        A second call does nothing. Cancelling the caller does not stop the writing.
        """
        if self._is_settled:
            return
        self._is_settled = True
        entry = Entry(
            self._caller, self._operation, self._model, self._family, self._request_id, dict(self._quantities)
        )
        if self._held is not None or any(self._quantities.values()):
            await _to_the_end(on_the_books(record, entry, self._held))

    async def hold(self, tokens: int) -> None:
        """Set aside what the call may use at most, where a quota or a budget asks for it.

        Raises:
            Throttled: `Throttling.AllocationQuota`.
            AccessDenied: if the key's budget does not reach.
        """
        price = max(price_nano(self._model, self._family, unit) for unit in self._quantities)
        wanted = quotas.Wanted(
            account_id=self._caller.account_id,
            family=self._family,
            tokens=tokens,
            is_free_only=quotas.is_free_only(self._model, self._family),
            key_id=self._caller.key_id,
            budget_nano=self._caller.monthly_budget_nano if price else None,
            cost_nano=tokens * price,
            now=timezone.now(),
        )
        if wanted.is_free_only or wanted.budget_nano is not None:
            await _to_the_end(self._keep_hold(wanted))

    async def _keep_hold(self, wanted: quotas.Wanted) -> None:
        self._held = await on_the_books(quotas.hold, wanted)
        if self._is_settled:  # the caller went away while this was written
            self._is_settled = False
            await self.settle()


@asynccontextmanager
async def charge(
    caller: Caller, *, operation: str, model: str, family: str, reserve_tokens: int, request_id: str
) -> AsyncIterator[Charge]:
    """Let a call of a model begin, and write down what it used when it ends: well, badly or cancelled.

    `reserve_tokens` is what the call uses at most, as far as one knows: as much is set aside of quota and budget.
    `request_id` is the server's own and names this one charge.

    Raises:
        Throttled: `Throttling.RateQuota` or `Throttling.AllocationQuota`; nothing was used then.
        AccessDenied: if the key may not use this model, or its budget for this month does not reach.
    """
    require_model(caller, model, family)
    await rates().admit(caller.account_id, operation)
    meter = Charge(caller, operation=operation, model=model, family=family, request_id=request_id)
    try:
        await meter.hold(reserve_tokens)
        yield meter
    finally:
        await meter.settle()


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for something that goes on when whoever waits is cancelled."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    return await asyncio.shield(task)
