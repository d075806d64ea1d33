"""Addresses that receivers may have, and the warning about those on this machine."""

from __future__ import annotations

import ipaddress
import logging

from django.conf import settings
from yarl import URL

from voiceapp.outbound.addresses import check_receiver
from voiceapp.webhooks.sample_delivery import allowed_networks

logger = logging.getLogger(__name__)

ONLY_IN_DEVELOPMENT = (
    "This receiver is on this machine. That is allowed because DEBUG=1; in production it is refused unless "
    "WEBHOOK_ALLOWED_NETWORKS names its network."
)


async def check_address(url: str) -> str:
    """Check an address that a receiver is to have; returns a warning, or nothing to warn of.

    Raises:
        InvalidParameter: if no receiver may be there.
    """
    await check_receiver(url, allowed_networks())
    if not settings.DEBUG or not _is_here(URL(url).host or ""):
        return ""
    logger.warning("webhook endpoint at %s: %s", URL(url).origin(), ONLY_IN_DEVELOPMENT)
    return ONLY_IN_DEVELOPMENT


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
