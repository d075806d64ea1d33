"""The line that deliveries are made by: which one is next, and the call itself.

Nobody waits for a receiver that is slow: an endpoint has a few calls at once, an account a good part of all, and among
those with something due the one with the fewest calls under way is first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils import timezone

from voiceapp.leases.rows import Claims, Lease
from voiceapp.outbound import Outbound
from voiceapp.webhooks import sending
from voiceapp.webhooks.delivery import Attempted, attempt
from voiceapp.webhooks.events import LINE
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
from voiceapp.webhooks.rules import Outcome
from voiceapp.webhooks.secrets import SecretLost
from voiceapp.webhooks.sending import Sent
from voiceapp.webhooks.signing import signature_headers
from voiceapp.webhooks.trial import holes

CAPACITY = 64
PER_ACCOUNT = 48
PER_ENDPOINT = 4

NEEDED = (
    "event__public_id",
    "event__body",
    "endpoint__url",
    "endpoint__secret_sealed",
    "endpoint__old_secret_sealed",
    "endpoint__old_secret_until",
)
"""Columns that a call is made of."""

Database = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is to be sent where."""

    event_id: str
    body: bytes
    endpoint: WebhookEndpoint


class DeliveryLine:
    """Deliveries of this process."""

    name = LINE
    capacity = CAPACITY

    def __init__(self) -> None:
        self.lease_s: float = settings.TASK_LEASE_S
        self._claims: Claims[Delivery] = Claims(Delivery, lease_s=self.lease_s)
        self._parcels: dict[int, Parcel] = {}
        """By row, from claim to the end of its work; written by the database's thread, taken by the event loop."""
        self._outbound: Outbound | None = None
        self._sent: list[tuple[Sent, asyncio.Future[None]]] = []
        self._recording: asyncio.Task[None] | None = None

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        """Take due deliveries, the oldest of each endpoint, from as many endpoints as there are."""
        wanted = self._next(limit)
        if not wanted:
            return ()
        rows = Delivery.objects.filter(pk__in=wanted)
        with transaction.atomic():
            leases = self._claims.claim(worker, limit=limit, rows=rows, delivery_at=Now())
            taken = Delivery.objects.filter(pk__in=[lease.row_id for lease in leases])
            for row in taken.select_related("event", "endpoint").only(*NEEDED):
                self._parcels[row.pk] = Parcel(row.event.public_id, row.event.body.encode(), row.endpoint)
        return leases

    def count_due(self, limit: int) -> int:
        return int(due()[:limit].count())

    def renew(self, lease: Lease) -> bool:
        return self._claims.renew(lease)

    def release(self, lease: Lease) -> bool:
        return self._claims.release(lease)

    async def work(self, lease: Lease, database: Database) -> None:
        """Make the call and write down what became of it."""
        parcel = self._parcels.pop(lease.row_id)
        now = timezone.now()
        try:
            signature = signature_headers(parcel.event_id, parcel.body, parcel.endpoint.secrets(now), now)
        except SecretLost as lost:
            unsent = Attempted(Outcome(), duration_ms=0, error=lost.message)
            await self._record(Sent(lease, parcel.endpoint.pk, unsent, now, is_hopeless=True), database)
            return
        attempted = await attempt(await self._client(), parcel.endpoint.url, parcel.body, signature)
        await self._record(Sent(lease, parcel.endpoint.pk, attempted, now), database)

    async def close(self) -> None:
        """Hang up."""
        if self._outbound is not None:
            await self._outbound.__aexit__(None, None, None)
            self._outbound = None

    async def _client(self) -> Outbound:
        if self._outbound is None:
            # Endpoints are what is limited; several of them may be one host's.
            self._outbound = Outbound(holes=holes(), limit=CAPACITY, limit_per_host=0)
            await self._outbound.__aenter__()
        return self._outbound

    async def _record(self, one: Sent, database: Database) -> None:
        """Have it written with whatever else ended while the database was busy."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sent.append((one, written))
        if self._recording is None:
            self._recording = asyncio.create_task(self._record_all(database))
        await written

    async def _record_all(self, database: Database) -> None:
        while self._sent:
            batch, self._sent = self._sent, []
            try:
                await database(sending.record, self._claims, [one for one, _ in batch])
            except Exception as error:
                for _, written in batch:
                    if not written.done():
                        written.set_exception(error)
            else:
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)
        self._recording = None

    def _next(self, limit: int) -> list[int]:
        """Keys of up to `limit` due deliveries, no more of any endpoint or account than it may have under way."""
        first = due(endpoint=OuterRef("pk")).order_by("due_at")
        oldest = {f"due_{place}": Subquery(first.values("pk")[place : place + 1]) for place in range(PER_ENDPOINT)}
        waiting = (
            WebhookEndpoint.objects.annotate(since=Subquery(first.values("due_at")[:1]), **oldest)
            .filter(since__isnull=False)
            .order_by("since")
            .values_list("pk", "workspace__account_id", "status", "deleted_at", *oldest)
        )
        called: list[tuple[int, int]] = []
        rows: dict[int, list[int]] = {}
        for endpoint, account, status, deleted_at, *found in waiting:
            if status == WebhookEndpoint.Status.ACTIVE and deleted_at is None:
                called.append((endpoint, account))
                rows[endpoint] = [row for row in found if row is not None]
            else:  # what a sender left behind that was killed
                sending.cancel_uncalled(due(endpoint=endpoint))
        under_way = Delivery.objects.filter(finish_at__isnull=True, status=Delivery.WORKING, due_at__gt=Now())
        pairs = under_way.values_list("endpoint_id", "endpoint__workspace__account_id") if called else ()
        shares = share_out(called, pairs, limit)
        return [row for endpoint, share in shares.items() for row in rows[endpoint][:share]]


def due(**wanted: Any) -> QuerySet[Delivery]:
    """Deliveries that may be claimed; those that are over are left out in the words of the index."""
    return Claims(Delivery).due(Delivery.objects.filter(finish_at__isnull=True, **wanted))


def share_out(called: Sequence[tuple[int, int]], under_way: Iterable[tuple[int, int]], limit: int) -> Counter[int]:
    """How many calls each endpoint may begin: `limit` in all, one after the other to those with the fewest.

    Both lists hold an endpoint and its account: once for each endpoint with something due, the longest due first, and
    once for each call under way.
    """
    of_endpoint: Counter[int] = Counter()
    of_account: Counter[int] = Counter()
    for endpoint, account in under_way:
        of_endpoint[endpoint] += 1
        of_account[account] += 1
    shares: Counter[int] = Counter()
    for calls in range(PER_ENDPOINT):
        # In this round come the endpoints with so many calls; those of the account with the fewest go first.
        for endpoint, account in sorted(called, key=lambda pair: of_account[pair[1]]):
            if shares.total() >= limit:
                return shares
            if of_endpoint[endpoint] == calls and of_account[account] < PER_ACCOUNT:
                of_endpoint[endpoint] += 1
                of_account[account] += 1
                shares[endpoint] += 1
    return shares
