"""The ledger: what was used, by whom, at which price. Lines are added and never changed.

A line is unique by request and unit, so writing it twice bills once. Prices are data (`LEDGER_PRICES`), in
nano-dollars for one of a unit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from voiceapp.accounts import quotas
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.bookkeeper import on_the_books
from voiceapp.accounts.cards import names_of
from voiceapp.accounts.models import UsageRecord
from voiceapp.accounts.quotas import Held

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """What was used for one request, or for one stretch of a session."""

    caller: Caller
    operation: str
    model: str
    family: str
    request_id: str
    """Unique among all entries; the server makes it, for a caller who could choose it could use it twice."""
    quantities: Mapping[str, int]
    """By unit: `input_tokens`, `output_tokens`, `audio_seconds`."""

    def lines(self, now: datetime) -> list[UsageRecord]:
        """A record for every unit of which there is something."""
        return [
            UsageRecord(
                account_id=self.caller.account_id,
                workspace_id=self.caller.workspace_id,
                key_id=self.caller.key_id,
                caller=self.caller.label[:200],
                operation=self.operation,
                family=self.family,
                model=self.model[:100],
                request_id=self.request_id,
                unit=unit,
                quantity=quantity,
                unit_price_nano=(price := price_nano(self.model, self.family, unit)),
                cost_nano=price * quantity,
                created_at=now,
            )
            for unit, quantity in self.quantities.items()
            if quantity
        ]


def price_nano(model: str, family: str, unit: str) -> int:
    """What one of a unit costs, in nano-dollars; 0 when no price is set."""
    prices: dict[str, dict[str, int]] = settings.LEDGER_PRICES
    named = [name for name in names_of(model, family) if name in prices]
    return prices.get(named[0] if named else family, {}).get(unit, 0)


def cost_nano(model: str, family: str, quantities: Mapping[str, int]) -> int:
    """What so much costs, in nano-dollars."""
    return sum(price_nano(model, family, unit) * quantity for unit, quantity in quantities.items())


async def write(
    caller: Caller, *, operation: str, model: str, family: str, request_id: str, quantities: Mapping[str, int]
) -> bool:
    """Add what was used outside a charge, such as a conversation's seconds of audio.

    Write a long session in stretches, each with a request id of its own (`sess_…:3` for its fourth minute), so that a
    crash loses one stretch.

    Returns:
        Whether it was new; False when this request's lines were in the ledger already.
    """
    return await on_the_books(record, Entry(caller, operation, model, family, request_id, quantities), None)


def record(entry: Entry, held: Held | None) -> bool:
    """Write an entry and settle what was held for it, both or neither; runs on the bookkeeper's thread.

    Returns:
        Whether it was new. What was held is settled in any case.
    """
    now = timezone.now()
    lines = entry.lines(now)
    try:
        with transaction.atomic():
            cost = sum(line.cost_nano for line in lines)
            if lines:
                UsageRecord.objects.bulk_create(lines)
            if cost and entry.caller.key_id is not None and (held is None or held.spend_id is None):
                quotas.spend(entry.caller.key_id, cost, now)
            if held is not None:
                quotas.settle(held, tokens=sum(entry.quantities.values()), cost_nano=cost)
    except IntegrityError:
        written = UsageRecord.objects.filter(request_id=entry.request_id, unit__in=[line.unit for line in lines])
        if not written.exists():
            raise
        logger.warning("request %s is in the ledger already", entry.request_id)
        if held is not None:
            with transaction.atomic():
                quotas.settle(held, tokens=0, cost_nano=0)
        return False
    return True
