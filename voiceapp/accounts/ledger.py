"""The ledger: what was used, by whom, at which price. Lines are added and never changed.

A line is unique by request and unit, so writing it twice bills once. Prices are data (`LEDGER_PRICES`), in
nano-dollars for one of a unit. `voiceapp.accounts.charges` alone writes here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from voiceapp.accounts import budgets
from voiceapp.accounts.budgets import Held
from voiceapp.accounts.caller import Caller
from voiceapp.accounts.models import UsageRecord
from voiceapp.catalogue.defaults import VOICE
from voiceapp.catalogue.lookup import catalogue

logger = logging.getLogger(__name__)


class Quantities(TypedDict, total=False):
    """So many of each unit: every unit that is counted, and that may have a price."""

    input_tokens: int
    """Tokens that a model reads: chat, embedding, reranking, and the conversation's model."""
    output_tokens: int
    """Tokens that a model writes, those of its reasoning included."""
    dropped_tokens: int
    """Tokens of conversations that were sent for replies which were begun early and dropped."""
    audio_seconds: int
    """Seconds of a transcribed recording, or of what a turn's caller said and was sent."""
    characters: int
    """Characters that are spoken into a file."""
    image_count: int
    video_count: int
    video_seconds: int
    """Length of a video, where the service reports it."""
    conversations: int
    """Calls that were passed on to another service, which alone knows how long they last."""


UNITS = tuple(Quantities.__annotations__)
TOKENS = frozenset({"input_tokens", "output_tokens"})
"""Units that free quotas are counted in."""


@dataclass(frozen=True, slots=True)
class Entry:
    caller: Caller
    operation: str
    model: str
    family: str
    request_id: str
    """Unique among all entries; the server makes it, for a caller who could choose it could use it twice."""
    quantities: Mapping[str, int]
    """Quantities by unit, one of `UNITS`."""
    agent: str = ""
    """Name and version of the agent that answered, such as `desk@3`."""

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
                agent=self.agent[:70],
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

    @property
    def tokens(self) -> int:
        """Tokens that count against a free quota."""
        return tokens_of(self.quantities)


def prices_of(model: str, family: str) -> Mapping[str, int]:
    """Return the price of one of each unit in nano-dollars: the model's own, or those of its family."""
    prices: dict[str, dict[str, int]] = settings.LEDGER_PRICES
    if family == "realtime" and catalogue().find(model, family) is None:  # an agent, which speaks as `voice` does
        model = VOICE
    named = [name for name in catalogue().names_of(model, family) if name in prices]
    return prices.get(named[0] if named else family, {})


def price_nano(model: str, family: str, unit: str) -> int:
    """Return the price of one unit in nano-dollars; 0 when none is set."""
    return prices_of(model, family).get(unit, 0)


def cost_nano(model: str, family: str, quantities: Mapping[str, int]) -> int:
    """Return the price of these quantities in nano-dollars."""
    prices = prices_of(model, family)
    return sum(prices.get(unit, 0) * quantity for unit, quantity in quantities.items())


def tokens_of(quantities: Mapping[str, int]) -> int:
    return sum(quantity for unit, quantity in quantities.items() if unit in TOKENS)


def record(entry: Entry, held: Held | None) -> bool:
    """Write an entry and settle what was held for it, both or neither; run in the database thread.

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
                budgets.spend(entry.caller.key_id, cost, now)
            if held is not None:
                budgets.settle(held, tokens=entry.tokens, cost_nano=cost)
    except IntegrityError:
        written = UsageRecord.objects.filter(request_id=entry.request_id, unit__in=[line.unit for line in lines])
        if not written.exists():
            raise
        logger.warning("request %s is in the ledger already", entry.request_id)
        if held is not None:
            with transaction.atomic():
                budgets.settle(held, tokens=0, cost_nano=0)
        return False
    return True
