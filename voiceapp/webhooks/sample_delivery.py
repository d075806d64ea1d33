"""A test delivery: one call, now, whose result is shown at once. The log has it; it counts neither for nor against the
receiver."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from voiceapp.outbound.addresses import Network
from voiceapp.outbound.client import Outbound
from voiceapp.webhooks.delivery import Attempted, attempt
from voiceapp.webhooks.events import TEST_KIND, sample_envelope
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint, WebhookEvent
from voiceapp.webhooks.signing import signature_headers
from voiceapp.webhooks.states import DeliveryStatus

MOST_REASON = 300


@dataclass(frozen=True, slots=True)
class SampleDelivery:
    endpoint: WebhookEndpoint
    event_id: str
    body: str
    sent_at: datetime
    attempted: Attempted

    @property
    def is_good(self) -> bool:
        status = self.attempted.outcome.status
        return status is not None and 200 <= status < 300

    @property
    def verdict(self) -> str:
        status, took = self.attempted.outcome.status, self.attempted.duration_ms
        if status is None:
            return self.attempted.error
        return f"The receiver responded with status {status} after {took} ms."

    @property
    def report(self) -> str:
        """The verdict and, in one line of what can be printed, how the response begins."""
        words = " ".join(self.attempted.answer_start.split())[:200]
        said = "".join(letter if letter.isprintable() else "\ufffd" for letter in words)
        return f"{self.verdict} Its response begins: {said}" if said else self.verdict

    def keep(self) -> None:
        """Write it into the log."""
        attempted, times = self.attempted, {"due_at": self.sent_at, "delivery_at": self.sent_at}
        with transaction.atomic():
            workspace = self.endpoint.workspace
            event = WebhookEvent.objects.create(
                public_id=self.event_id, workspace=workspace, kind=TEST_KIND, body=self.body
            )
            delivery = Delivery.objects.create(
                event=event,
                endpoint=self.endpoint,
                status=DeliveryStatus.SUCCEEDED if self.is_good else DeliveryStatus.FAILED,
                failure_reason="" if self.is_good else self.verdict[:MOST_REASON],
                finish_at=timezone.now(),
                attempts=1,
                **times,
            )
            Attempt.objects.create(
                delivery=delivery,
                at=self.sent_at,
                status_code=attempted.outcome.status,
                duration_ms=attempted.duration_ms,
                answer_start=attempted.answer_start,
                error=attempted.error[:MOST_REASON],
            )


async def try_once(endpoint: WebhookEndpoint, kind: str = TEST_KIND) -> SampleDelivery:
    """Send a sample of a kind of event to an endpoint whose `workspace` is loaded.

    Raises:
        SecretLost: if there is nothing to sign with.
    """
    event_id, text = sample_envelope(endpoint, kind)
    body, now = text.encode(), timezone.now()
    async with Outbound(allowed_networks=allowed_networks()) as outbound:
        signature = signature_headers(event_id, body, endpoint.secrets(now), now)
        attempted = await attempt(outbound, endpoint.url, body, signature)
        return SampleDelivery(endpoint, event_id, text, now, attempted)


def allowed_networks() -> Sequence[Network]:
    """Private networks in which receivers may be."""
    return _networks(tuple(settings.WEBHOOK_ALLOWED_NETWORKS))


@cache
def _networks(texts: tuple[str, ...]) -> Sequence[Network]:
    return tuple(ipaddress.ip_network(text) for text in texts)
