"""What became of calls, written down by many at once: counted exactly, and by nobody who is too late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.webhooks.conftest import PATIENCE_S
from voiceapp.leases.rows import Claims, Lease
from voiceapp.webhooks import store
from voiceapp.webhooks.delivery import Attempted
from voiceapp.webhooks.events import Event, EventKind, publish
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.queue import DeliveryQueue
from voiceapp.webhooks.results import AttemptResult, record
from voiceapp.webhooks.rules import FailureKind, Outcome

pytestmark = pytest.mark.django_db(transaction=True)

CLAIMS: Claims[Delivery] = Claims(Delivery)
AT_ONCE = 10


@pytest.fixture(autouse=True)
def no_second_chance(settings: Settings) -> None:
    settings.WEBHOOK_RETRY_SCHEDULE = []


@pytest.fixture
def endpoint(alice: Member) -> WebhookEndpoint:
    made, _ = store.create(alice.workspace.pk, url="http://127.0.0.1:9/", events=[EventKind.TASK_FINISHED])
    return made


def happen(member: Member, times: int = 1) -> None:
    publish(member.workspace.pk, [Event(EventKind.TASK_FINISHED, f"task-{number}") for number in range(times)])


def sent(endpoint: WebhookEndpoint, lease: Lease, status: int) -> AttemptResult:
    return AttemptResult(lease, endpoint.pk, Attempted(Outcome(status), duration_ms=5), timezone.now())


def record_at_once(batches: Sequence[Sequence[AttemptResult]]) -> None:
    """Each batch by a thread of its own, with a connection of its own, all beginning together."""
    ready = Barrier(len(batches))

    def one(batch: Sequence[AttemptResult]) -> None:
        try:
            ready.wait(PATIENCE_S)
            record(batch)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(batches)) as threads:
        list(threads.map(one, batches))


def test_fifty_failures_recorded_by_many_at_once_are_fifty(alice: Member, endpoint: WebhookEndpoint) -> None:
    happen(alice, 50)
    failures = [sent(endpoint, lease, 500) for lease in CLAIMS.claim("worker", limit=50)]
    record_at_once([failures[part::AT_ONCE] for part in range(AT_ONCE)])
    endpoint.refresh_from_db()
    assert endpoint.consecutive_fail == 50
    assert endpoint.first_fail_at is not None
    assert Delivery.objects.filter(status="FAILED").count() == Attempt.objects.count() == 50


def test_a_success_among_many_failures_begins_the_count_anew(alice: Member, endpoint: WebhookEndpoint) -> None:
    happen(alice, 40)
    first, *rest = CLAIMS.claim("worker", limit=40)
    record_at_once([[sent(endpoint, lease, 500) for lease in rest[part::AT_ONCE]] for part in range(AT_ONCE)])
    record([sent(endpoint, first, 200)])
    endpoint.refresh_from_db()
    assert (endpoint.consecutive_fail, endpoint.first_fail_at) == (0, None)
    assert endpoint.last_success_at is not None
    assert endpoint.last_failure_at is not None


@pytest.mark.parametrize(
    ("statuses", "in_a_row"), [([500, 200, 500], 1), ([200, 500, 500], 2), ([500, 500, 200], 0), ([400] * 3, 3)]
)
def test_ends_that_are_written_together_count_in_their_order(
    alice: Member, endpoint: WebhookEndpoint, statuses: list[int], in_a_row: int
) -> None:
    happen(alice, 3)
    leases = CLAIMS.claim("worker", limit=3)
    record([sent(endpoint, lease, status) for lease, status in zip(leases, statuses, strict=True)])
    endpoint.refresh_from_db()
    assert endpoint.consecutive_fail == in_a_row
    assert (endpoint.first_fail_at is None) == (in_a_row == 0)


def test_it_is_disabled_once_and_what_waits_is_canceled_with_it(alice: Member, endpoint: WebhookEndpoint) -> None:
    WebhookEndpoint.objects.update(first_fail_at=timezone.now() - timedelta(hours=2))
    happen(alice, 30)
    failures = [sent(endpoint, lease, 500) for lease in CLAIMS.claim("worker", limit=25)]
    record_at_once([failures[part::5] for part in range(5)])
    endpoint.refresh_from_db()
    assert (endpoint.status, endpoint.disabled_reason) == ("DISABLED", "CONSECUTIVE_DELIVERY_FAILURES")
    assert endpoint.consecutive_fail == 25
    assert Delivery.objects.filter(status="FAILED").count() == 25
    assert Delivery.objects.filter(status="CANCELED", finish_at__isnull=False).count() == 5


def test_who_comes_too_late_changes_nothing(alice: Member, endpoint: WebhookEndpoint) -> None:
    happen(alice)
    [late] = Claims(Delivery, lease_s=-1.0).claim("frozen")
    [current] = CLAIMS.claim("next")
    record([sent(endpoint, late, 500)])
    endpoint.refresh_from_db()
    assert (endpoint.consecutive_fail, Attempt.objects.count()) == (0, 0)
    record([sent(endpoint, current, 200)])
    record([sent(endpoint, late, 500), sent(endpoint, current, 500)])
    endpoint.refresh_from_db()
    assert (endpoint.consecutive_fail, Attempt.objects.count()) == (0, 1)
    assert Delivery.objects.get().status == "SUCCEEDED"


def test_a_call_whose_sender_was_killed_takes_none_of_the_receivers_chances(
    alice: Member, endpoint: WebhookEndpoint
) -> None:
    happen(alice)
    line = DeliveryQueue()
    for _ in range(5):
        [lease] = line.claim("killed", 1)
        assert lease.attempts == 1
        Delivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert Delivery.objects.get().attempts == 1


@pytest.mark.parametrize("end", [store.disable, store.delete], ids=["disabled", "deleted"])
def test_a_call_that_outlives_its_endpoint_is_not_tried_again(
    alice: Member, endpoint: WebhookEndpoint, settings: Settings, end: Callable[[WebhookEndpoint], object]
) -> None:
    settings.WEBHOOK_RETRY_SCHEDULE = [10.0]
    happen(alice, 2)
    failed, succeeded = CLAIMS.claim("worker", limit=2)
    end(endpoint)
    record([sent(endpoint, failed, 503), sent(endpoint, succeeded, 200)])
    assert Delivery.objects.get(pk=failed.row_id).status == "CANCELED"
    assert Delivery.objects.get(pk=succeeded.row_id).status == "SUCCEEDED"
    assert Attempt.objects.count() == 2


def test_what_was_never_sent_says_nothing_about_the_receiver(
    alice: Member, endpoint: WebhookEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    happen(alice, 2)
    unsent, good = CLAIMS.claim("worker", limit=2)
    hopeless = AttemptResult(
        unsent, endpoint.pk, Attempted(Outcome(), 0, error="No secret."), timezone.now(), is_hopeless=True
    )
    record([sent(endpoint, good, 200), hopeless])
    endpoint.refresh_from_db()
    assert (endpoint.consecutive_fail, endpoint.last_failure_at) == (0, None)
    assert endpoint.last_success_at is not None
    assert Delivery.objects.get(pk=good.row_id).status == "SUCCEEDED"
    failed = Delivery.objects.get(pk=unsent.row_id)
    assert (failed.status, failed.failure_reason) == ("FAILED", "No secret.")
    (told,) = (record.message for record in caplog.records if "failed for good" in record.message)
    facts = f"account={alice.account.pk} endpoint={endpoint.public_id} attempts=1 seconds=0.0 reason='No secret.'"
    assert told == f"delivery {failed.pk}: failed for good, {facts}"


def test_the_log_says_of_each_attempt_what_came_of_it(alice: Member, endpoint: WebhookEndpoint) -> None:
    happen(alice, 2)
    answered, silent = CLAIMS.claim("worker", limit=2)
    at = timezone.now()
    said = Attempted(Outcome(200), duration_ms=7, answer_start='{"it\'s": "\u00e9%s"}')
    nothing = Attempted(Outcome(trouble=FailureKind.TIMEOUT), duration_ms=5000, error="x" * 400)
    record([AttemptResult(answered, endpoint.pk, said, at), AttemptResult(silent, endpoint.pk, nothing, at)])
    columns = ("delivery", "at", "status_code", "duration_ms", "answer_start", "error")
    assert set(Attempt.objects.values_list(*columns)) == {
        (answered.row_id, at, 200, 7, '{"it\'s": "\u00e9%s"}', ""),
        (silent.row_id, at, None, 5000, "", "x" * 300),
    }
