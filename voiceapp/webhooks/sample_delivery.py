"""A test delivery: one call, now, whose result is shown at once and not kept in the log."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils import timezone

from voiceapp.outbound.addresses import Network
from voiceapp.outbound.client import Outbound
from voiceapp.webhooks.delivery import Attempted, attempt
from voiceapp.webhooks.events import trial_envelope
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.signing import signature_headers


@dataclass(frozen=True, slots=True)
class SampleDelivery:
    body: str
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


async def try_once(endpoint: WebhookEndpoint) -> SampleDelivery:
    """Send `webhook.test` to an endpoint whose `workspace` is loaded.

    Raises:
        SecretLost: if there is nothing to sign with.
    """
    event_id, text = trial_envelope(endpoint, endpoint.workspace)
    body, now = text.encode(), timezone.now()
    async with Outbound(allowed_networks=allowed_networks()) as outbound:
        signature = signature_headers(event_id, body, endpoint.secrets(now), now)
        return SampleDelivery(text, await attempt(outbound, endpoint.url, body, signature))


def allowed_networks() -> Sequence[Network]:
    """Private networks in which receivers may be."""
    return _networks(tuple(settings.WEBHOOK_ALLOWED_NETWORKS))


@cache
def _networks(texts: tuple[str, ...]) -> Sequence[Network]:
    return tuple(ipaddress.ip_network(text) for text in texts)
