"""The queue of deliveries: which one is next, and the call itself.

A slow receiver does not hold up the others: an endpoint has a few calls at once, an account no more than it leaves to
others, and among those with something due the one with the fewest calls under way is first. Endpoints that are new,
or were slow the last time, share a part of the room, so that those that are quick always find some.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from aiohttp.abc import AbstractResolver
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.db.models import Case, F, OuterRef, QuerySet, Subquery, TextField, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from voiceapp.leases.rows import Claims, Lease
from voiceapp.leases.statements import Statement, keys_given
from voiceapp.outbound.client import Outbound
from voiceapp.webhooks import results
from voiceapp.webhooks.delivery import Attempted, attempt
from voiceapp.webhooks.events import QUEUE_NAME
from voiceapp.webhooks.models import Delivery, WebhookEndpoint
from voiceapp.webhooks.results import AttemptResult
from voiceapp.webhooks.rules import Outcome
from voiceapp.webhooks.sample_delivery import allowed_networks
from voiceapp.webhooks.secrets import SecretLost, decrypt_both
from voiceapp.webhooks.signing import signature_headers
from voiceapp.webhooks.states import DeliveryStatus, EndpointStatus

logger = logging.getLogger(__name__)

CAPACITY = 384
NEW_CAPACITY = 256
"""Calls at once, all together, to endpoints that this process has not called before."""
SLOW_CAPACITY = 64
"""Calls at once of endpoints whose last call was slow; the rest is for those that were quick."""
SLOW_MS = 2000
KNOWN = 10_000
"""Number of endpoints that are remembered."""
PER_ENDPOINT = 4
GATHER_S = 0.01
"""Time that the end of a call waits for others to be written in the same transaction."""
RETRY_S = 1.0
"""Pause after the database did not answer."""

FAILED_HERE = "The server failed with an unexpected error. Its log has the reason."

Database = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Receiver:
    """An endpoint, as far as a call to it needs to know."""

    endpoint_id: int
    """The row's key."""
    url: str
    secret_sealed: str
    old_secret_sealed: str
    """Empty when only one secret signs."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    event_id: str
    body: bytes
    receiver: Receiver


class DeliveryQueue:
    name = QUEUE_NAME
    capacity = CAPACITY

    def __init__(self, *, resolver: AbstractResolver | None = None) -> None:
        """`resolver` is asked what names mean, instead of the system."""
        self._resolver = resolver
        self._lease_s: float = settings.TASK_LEASE_S
        self.renew_every_s = self._lease_s / 3
        self._claims: Claims[Delivery] = Claims(Delivery, lease_s=self._lease_s)
        self._outgoing: dict[int, Outgoing] = {}
        """Deliveries by row, from claim to the end of their work; written by the database's thread, taken by the event
        loop."""
        self._was_slow: dict[int, bool] = {}
        """True by endpoint if its last call was slow, the one longest ago first; read by the database's thread."""
        self._outbound: Outbound | None = None
        self._calling = 0
        self._quiet = asyncio.Event()
        """Set while no call is under way."""
        self._sent: list[tuple[AttemptResult, asyncio.Future[None]]] = []
        self._recording: asyncio.Task[None] | None = None

    def claim(self, worker: str, limit: int) -> Sequence[Lease]:
        """Take due deliveries, the oldest of each endpoint, from as many endpoints as there are."""
        receivers = _next(worker, limit, self._was_slow.copy())
        if not receivers:
            return ()
        outgoing = {
            row: Outgoing(event_id, body.encode(), receivers[row])
            for row, event_id, body in _events_statement().run(receivers)
        }
        leases = [Lease(*found) for found in _claim_statement(worker, self._lease_s).run(outgoing)]
        for lease in leases:
            self._outgoing[lease.row_id] = outgoing[lease.row_id]
        return leases

    def count_due(self, limit: int) -> int:
        return int(due()[:limit].count())

    def renew(self, lease: Lease) -> bool:
        return self._claims.renew(lease)

    def release(self, lease: Lease) -> bool:
        self._outgoing.pop(lease.row_id, None)
        return self._claims.release(lease)

    async def work(self, lease: Lease, database: Database) -> None:
        """Make the call and write down what became of it."""
        outgoing = self._outgoing.pop(lease.row_id)
        receiver = outgoing.receiver
        now = timezone.now()
        is_hopeless = False
        try:
            secrets = decrypt_both(receiver.secret_sealed, receiver.old_secret_sealed)
            signature = signature_headers(outgoing.event_id, outgoing.body, secrets, now)
            attempted = await self._call(outgoing, signature)
        except SecretLost as lost:
            attempted = Attempted(Outcome(), duration_ms=0, error=lost.message)
            is_hopeless = True
        except Exception:
            # Unrecorded, it would be claimed again at the end of every lease, for ever.
            logger.exception("delivery %s: failed with an unexpected error", lease.row_id)
            attempted = Attempted(Outcome(), duration_ms=0, error=FAILED_HERE)
        self._note_pace(receiver.endpoint_id, attempted.duration_ms)
        await self._record(AttemptResult(lease, receiver.endpoint_id, attempted, now, is_hopeless), database)

    async def close(self) -> None:
        if self._recording is not None:
            self._recording.cancel()
        if self._outbound is not None:
            await self._outbound.__aexit__(None, None, None)
            self._outbound = None

    async def _call(self, outgoing: Outgoing, signature: Mapping[str, str]) -> Attempted:
        self._calling += 1
        self._quiet.clear()
        try:
            return await attempt(await self._client(), outgoing.receiver.url, outgoing.body, signature)
        finally:
            self._calling -= 1
            if not self._calling:
                self._quiet.set()

    def _note_pace(self, endpoint: int, duration_ms: int) -> None:
        self._was_slow.pop(endpoint, None)
        self._was_slow[endpoint] = duration_ms >= SLOW_MS
        if len(self._was_slow) > KNOWN:
            del self._was_slow[next(iter(self._was_slow))]

    async def _client(self) -> Outbound:
        if self._outbound is None:
            # Endpoints are what is limited; several of them may be one host's.
            self._outbound = Outbound(
                allowed_networks=allowed_networks(), limit=CAPACITY, limit_per_host=0, resolver=self._resolver
            )
            await self._outbound.__aenter__()
        return self._outbound

    async def _record(self, one: AttemptResult, database: Database) -> None:
        """Have it written with whatever else ends at about the same time."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sent.append((one, written))
        if self._recording is None:
            self._recording = asyncio.create_task(self._record_all(database), name="deliveries: record results")
        await written

    async def _record_all(self, database: Database) -> None:
        while self._sent:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), GATHER_S)
            batch = [(one, written) for one, written in self._sent if not written.done()]
            self._sent = []
            try:
                await database(results.record, [one for one, _ in batch])
            except (OperationalError, InterfaceError) as error:
                logger.warning("deliveries: results cannot be written, trying again in %g s: %s", RETRY_S, error)
                self._sent = batch + self._sent
                await asyncio.sleep(RETRY_S)
                await database(close_old_connections)
            except Exception as error:
                for _, written in batch:
                    if not written.done():
                        written.set_exception(error)
            else:
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)
        self._recording = None


def _next(worker: str, limit: int, was_slow: Mapping[int, bool]) -> dict[int, Receiver]:
    """Keys of up to `limit` due deliveries, no more of any endpoint or account than it may have under way.

    Those that were quick the last time come first, then those that `was_slow` does not know.
    """
    called: list[tuple[int, int]] = []
    rows: dict[int, list[int]] = {}
    receivers: dict[int, Receiver] = {}
    for waiting in _waiting_endpoints():
        endpoint = waiting.receiver.endpoint_id
        if waiting.is_called:
            called.append((endpoint, waiting.account_id))
            rows[endpoint] = list(waiting.oldest)
            receivers[endpoint] = waiting.receiver
        else:  # what a sender left behind that was killed
            results.cancel_uncalled(due(endpoint=endpoint))
    under_way = _under_way_statement().run() if called else ()
    of_endpoint = Counter(endpoint for endpoint, _, _ in under_way)
    ours = [(endpoint, account) for endpoint, account, sender in under_way if sender == worker]
    shares: Counter[int] = Counter()
    for pace, capacity in ((False, CAPACITY), (None, NEW_CAPACITY), (True, SLOW_CAPACITY)):
        alike = [(endpoint, account) for endpoint, account in called if was_slow.get(endpoint) is pace]
        of_account = Counter(account for endpoint, account in ours if was_slow.get(endpoint) is pace)
        room = min(limit - shares.total(), capacity - of_account.total())
        shares += share_out(alike, of_endpoint, of_account, room)
    return {row: receivers[endpoint] for endpoint, share in shares.items() for row in rows[endpoint][:share]}


@dataclass(frozen=True, slots=True)
class WaitingEndpoint:
    receiver: Receiver
    account_id: int
    is_called: bool
    """Events are delivered to the endpoint."""
    oldest: Sequence[int]
    """Keys of its first deliveries that are due."""


def _waiting_endpoints() -> Iterator[WaitingEndpoint]:
    """The longest due first."""
    for pk, account_id, status, deleted_at, url, secret, old_secret, _since, *oldest in _waiting_statement().run():
        yield WaitingEndpoint(
            receiver=Receiver(pk, url, secret, old_secret),
            account_id=account_id,
            is_called=status == EndpointStatus.ACTIVE and deleted_at is None,
            oldest=[row for row in oldest if row is not None],
        )


@cache
def _waiting_statement() -> Statement:
    """Selects what `_waiting_endpoints` reads, in that order of columns."""
    first = due(endpoint=OuterRef("pk")).order_by("due_at")
    oldest = {f"due_{place}": Subquery(first.values("pk")[place : place + 1]) for place in range(PER_ENDPOINT)}
    old_secret = Case(
        When(old_secret_until__gt=Now(), then=F("old_secret_sealed")), default=Value("", output_field=TextField())
    )
    waiting = WebhookEndpoint.objects.annotate(since=Subquery(first.values("due_at")[:1]), old=old_secret, **oldest)
    waiting = waiting.filter(since__isnull=False).order_by("since")
    state = ("pk", "workspace__account_id", "status", "deleted_at")
    return Statement.selecting(waiting.values_list(*state, "url", "secret_sealed", "old", "since", *oldest))


@cache
def _under_way_statement() -> Statement:
    """Endpoint, account and worker of each call under way, in this process or another."""
    calls = Delivery.objects.filter(finish_at__isnull=True, status=DeliveryStatus.DELIVERING, due_at__gt=Now())
    return Statement.selecting(calls.values_list("endpoint_id", "endpoint__workspace__account_id", "leased_by"))


@cache
def _events_statement() -> Statement:
    """Key, event and body of deliveries."""
    wanted = Delivery.objects.filter(pk__in=keys_given())
    return Statement.selecting(wanted.values_list("pk", "event__public_id", "event__body"))


@lru_cache(maxsize=4)
def _claim_statement(worker: str, lease_s: float) -> Statement:
    """Takes deliveries that are due."""
    # The result of a call whose sender was killed is unknown; it does not count as an attempt.
    attempts = Case(When(status=DeliveryStatus.DELIVERING, then=F("attempts")), default=F("attempts") + 1)
    rows = Delivery.objects.filter(pk__in=keys_given())
    return Claims(Delivery, lease_s=lease_s).claiming(worker, CAPACITY, rows, delivery_at=Now(), attempts=attempts)


def due(**wanted: Any) -> QuerySet[Delivery]:
    """Deliveries that may be claimed; those that are over are left out in the words of the index."""
    return Claims(Delivery).due(Delivery.objects.filter(finish_at__isnull=True, **wanted))


def share_out(
    called: Sequence[tuple[int, int]], of_endpoint: Mapping[int, int], of_account: Mapping[int, int], limit: int
) -> Counter[int]:
    """Return how many calls each endpoint may begin: `limit` in all, given in turn to those with the fewest.

    `called` holds an endpoint and its account for each endpoint with something due, the longest due first. What is
    under way is counted by endpoint, everywhere, and by account, in this process. An account gets no more than half of
    what the others leave, so that however much hangs there is room for one more.
    """
    of_endpoint, of_account = Counter(of_endpoint), Counter(of_account)
    shares: Counter[int] = Counter()
    for calls in range(PER_ENDPOINT):
        # In this round come the endpoints with so many calls; those of the account with the fewest go first.
        for endpoint, account in sorted(called, key=lambda pair: of_account[pair[1]]):
            if of_endpoint[endpoint] == calls and of_account[account] < limit:
                limit -= 1
                of_endpoint[endpoint] += 1
                of_account[account] += 1
                shares[endpoint] += 1
    return shares
