"""Around every use of a model: may it begin, and what did it use. The one way to charge, whatever the unit.

    async with charge(caller, operation="rerank", model=…, family="rerank", request_id=…, input_tokens=n) as meter:
        …
        meter.used(input_tokens=n)

The units that `charge` is given are what the call uses at most, as far as is known when it begins: so much is set aside
of the free quota and of the key's monthly budget. What was used is in the ledger when the block ends, however it ends.
A result that leaves after the block is therefore never missing from the ledger; an operation that streams calls
`settle` before its last piece.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar, Unpack, cast

from django.utils import timezone

from voiceapp import tracing
from voiceapp.accounts import budgets
from voiceapp.accounts.budgets import HOLD_LIFETIME, Held, Wanted
from voiceapp.accounts.caller import Caller
from voiceapp.accounts.ledger import UNITS, Entry, Quantities, cost_nano, prices_of, record, tokens_of
from voiceapp.accounts.rates import rates
from voiceapp.catalogue.lookup import catalogue
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import AccessDenied, VoiceError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_unfinished: set[asyncio.Task[Any]] = set()
"""Entries whose callers went away; the event loop itself keeps no hold of its tasks."""


def require_model(caller: Caller, model: str, family: str) -> None:
    """Check that the caller's key may use a model, by its name or any alias.

    Raises:
        AccessDenied: if the key names other models and not this one.
    """
    if caller.allowed_models and not caller.allowed_models & catalogue().names_of(model, family):
        raise AccessDenied(f"This API key may not be used for the model '{model[:80]}'.")


async def require_budget(
    caller: Caller, model: str, family: str, *, asks_anew: bool = False, **most: Unpack[Quantities]
) -> None:
    """Check that the key's budget for this month allows work that is done later: nothing is set aside for it yet.

    Without units, some of the budget must be left. `asks_anew` reads it from the key's row. A caller without a budget
    and a model without prices cost no query.

    Raises:
        AccessDenied: if the budget does not allow it.
    """
    if caller.monthly_budget_nano is not None and has_price(model, family):
        await run_in_db_thread(budgets.check, _wanted(caller, model, family, _checked(most), asks_anew=asks_anew))


def has_price(model: str, family: str) -> bool:
    """Return whether any unit of a model costs something, so that a budget holds its calls back."""
    return any(prices_of(model, family).values())


class Charge:
    """The hold, usage and price of one call of a model. Not shared between asyncio tasks."""

    def __init__(
        self,
        caller: Caller,
        *,
        operation: str,
        model: str,
        family: str,
        request_id: str,
        agent: str = "",
        lifetime: timedelta = HOLD_LIFETIME,
    ) -> None:
        """`request_id` is the server's own and names this one charge; `agent` is who answers, such as `desk@3`;
        `lifetime` is how long the call lasts at most."""
        self._caller = caller
        self._operation = operation
        self._model = model
        self._family = family
        self._request_id = request_id
        self._agent = agent
        self._lifetime = lifetime
        self.quantities: dict[str, int] = {}
        self._held: Held | None = None
        self._is_settled = False

    @property
    def is_held(self) -> bool:
        return self._held is not None

    @property
    def left_nano(self) -> int | None:
        """The rest of the key's budget at the last hold, that hold included; None without a budget."""
        return None if self._held is None else self._held.left_nano

    @property
    def cost_nano(self) -> int:
        """Price of the call so far."""
        return cost_nano(self._model, self._family, self.quantities)

    async def reserve(self, *, asks_anew: bool = False, **most: Unpack[Quantities]) -> None:
        """Set aside what the call uses at most, where a quota or a budget asks for it, in place of what it holds.

        `asks_anew` reads the key's budget from its row, for a caller who came long ago.

        Raises:
            Throttled: `Throttling.AllocationQuota`.
            AccessDenied: if the key's budget does not allow it.
        """
        wanted = _wanted(
            self._caller,
            self._model,
            self._family,
            _checked(most),
            request_id=self._request_id,
            lifetime=self._lifetime,
            asks_anew=asks_anew,
        )
        if wanted.is_free_only or wanted.budget_nano is not None:
            await _to_the_end(self._keep_hold(wanted))

    def used(self, **quantities: Unpack[Quantities]) -> None:
        """Say what the call has used so far, in all; of several reports of one unit the last one counts.

        Raises:
            AccessDenied: if that is more than the key's budget for this month had left. What was used stays charged.
        """
        self.quantities |= _checked(quantities)
        if self.left_nano is not None and self.cost_nano > self.left_nano:
            raise AccessDenied("This API key's budget for this month is used up. Ask an operator.")

    def used_more(self, **quantities: Unpack[Quantities]) -> None:
        """Add to what the call has used; never raises for the budget."""
        for unit, quantity in _checked(quantities).items():
            self.quantities[unit] = self.quantities.get(unit, 0) + quantity

    async def settle(self) -> None:
        """Write the ledger and settle quota and budget now; what is reported later does not count.

        A second call does nothing. Cancelling the caller does not stop the writing.

        Raises:
            DatabaseUnavailable: if the database does not answer; call it again then.
        """
        if self._is_settled:
            return
        self._is_settled = True
        names = (self._operation, self._model, self._family, self._request_id)
        entry = Entry(self._caller, *names, dict(self.quantities), self._agent)
        if self._held is not None or any(self.quantities.values()):
            await _to_the_end(self._write(entry))

    async def _write(self, entry: Entry) -> None:
        try:
            await run_in_db_thread(record, entry, self._held)
        except BaseException:
            self._is_settled = False
            raise

    async def _keep_hold(self, wanted: Wanted) -> None:
        self._held = await run_in_db_thread(budgets.hold, wanted, instead_of=self._held)
        if self._is_settled:  # the caller went away while this was written
            self._is_settled = False
            await self.settle()


@asynccontextmanager
async def charge(
    caller: Caller,
    *,
    operation: str,
    model: str,
    family: str,
    request_id: str,
    agent: str = "",
    lifetime: timedelta = HOLD_LIFETIME,
    **most: Unpack[Quantities],
) -> AsyncIterator[Charge]:
    """Let a call of a model begin, and write down what it used when it ends: well, badly or cancelled.

    A key that is held to models must have the model, or the `agent` that answers with it, such as `desk@3`.

    `most` is what the call uses at most, as far as one knows; `Charge.reserve` changes it when more is known. Without
    it, some of the quota and of the budget must be left.

    Raises:
        Throttled: `Throttling.RateQuota` or `Throttling.AllocationQuota`; nothing was used then.
        AccessDenied: if the key may not use this model, or its budget for this month does not allow it.
    """
    require_model(caller, agent.partition("@")[0] or model, family)
    await rates().admit(caller.account_id, operation)
    meter = Charge(
        caller, operation=operation, model=model, family=family, request_id=request_id, agent=agent, lifetime=lifetime
    )
    with tracing.call("embeddings" if operation == "embedding" else operation, model) as span:
        try:
            await meter.reserve(**most)
            yield meter
        finally:
            tracing.used(span, meter.quantities)
            await meter.settle()


def _checked(quantities: Quantities) -> Mapping[str, int]:
    """Quantities that may be charged, by unit.

    Raises:
        TypeError: for a unit that does not exist.
        ValueError: for a negative quantity.
    """
    found = cast(Mapping[str, int], quantities)
    for unit, quantity in found.items():
        if unit not in UNITS:
            raise TypeError(f"{unit!r} is not a unit.")
        if quantity < 0:
            raise ValueError(f"{quantity} {unit} cannot be.")
    return found


def _wanted(caller: Caller, model: str, family: str, most: Mapping[str, int], **how: Any) -> Wanted:
    return Wanted(
        account_id=caller.account_id,
        family=family,
        tokens=tokens_of(most),
        is_free_only=budgets.is_free_only(model, family),
        key_id=caller.key_id,
        budget_nano=caller.monthly_budget_nano if has_price(model, family) else None,
        cost_nano=cost_nano(model, family, most),
        now=timezone.now(),
        **how,
    )


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for something that goes on when the waiting task is cancelled."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_log_fault)
        raise


def _log_fault(task: asyncio.Task[Any]) -> None:
    """A refusal concerns only the caller, who is gone; a fault concerns the operator."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, VoiceError):
        logger.error("a charge could not be written after its caller had gone", exc_info=error)
