"""Offers that are answered while their callers are not connected yet: bounded, because anyone with a key can make them.

A pending offer holds no seat. It costs this process some memory and some ports, so the oldest one makes way when there
are too many: first of the same caller, else of the one with the most.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.conf import settings

from voiceapp.accounts.addresses import neighbourhood
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.seats import CONCURRENCY
from voiceapp.errors import Throttled

CONNECTING_S = 2.0
"""A caller whose offers are all younger than this gets no further one: so long, callers are just connecting."""


@dataclass(eq=False, slots=True)
class PendingOffer:
    """One answered offer. `dropped` is set when it has to make way for another."""

    account_id: int
    place: str
    """The neighbourhood of the caller's address."""
    since: float
    dropped: asyncio.Event = field(default_factory=asyncio.Event)


class PendingOffers:
    """The pending offers of an event loop, the oldest first."""

    def __init__(
        self, *, total: int, per_account: int, per_address: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`per_address` counts the offers of one account that come from one address."""
        self._total = total
        self._per_account = per_account
        self._per_address = per_address
        self._clock = clock
        self._offers: list[PendingOffer] = []

    @classmethod
    def from_settings(cls) -> PendingOffers:
        return cls(
            total=settings.MAX_PENDING_OFFERS,
            per_account=settings.MAX_PENDING_OFFERS_PER_ACCOUNT,
            per_address=settings.MAX_PENDING_OFFERS_PER_ADDRESS,
        )

    def __len__(self) -> int:
        return len(self._offers)

    def add(self, caller: Caller, address: str) -> PendingOffer:
        """Count an offer that is about to be answered; an older one is dropped where there are too many.

        Raises:
            Throttled: the caller has as many as an address may have, and all of them are just connecting.
        """
        offer = PendingOffer(caller.account_id, neighbourhood(address), self._clock())
        of_account = [other for other in self._offers if other.account_id == offer.account_id]
        of_address = [other for other in of_account if other.place == offer.place]
        if len(of_address) >= self._per_address:
            if offer.since - of_address[0].since < CONNECTING_S:
                raise Throttled(
                    f"{len(of_address)} offers from this address wait for their callers to connect. Connect them "
                    "first, or try again shortly.",
                    code=CONCURRENCY,
                )
            self._drop(of_address[0])
        elif len(of_account) >= self._per_account:
            self._drop(_oldest_of_the_most(of_account))
        elif len(self._offers) >= self._total:
            accounts = Counter(other.account_id for other in self._offers)
            most = max(accounts.values())
            self._drop(_oldest_of_the_most(other for other in self._offers if accounts[other.account_id] == most))
        self._offers.append(offer)
        return offer

    def remove(self, offer: PendingOffer) -> None:
        """The caller is connected, or will not be; harmless when it is not counted any more."""
        if offer in self._offers:
            self._offers.remove(offer)

    def _drop(self, offer: PendingOffer) -> None:
        self._offers.remove(offer)
        offer.dropped.set()


def _oldest_of_the_most(offers: Iterable[PendingOffer]) -> PendingOffer:
    """Return the oldest offer of the caller with the most of them."""
    listed = list(offers)
    callers = Counter((offer.account_id, offer.place) for offer in listed)
    return max(listed, key=lambda offer: callers[offer.account_id, offer.place])  # the first of several
