"""Signing in at a proxy: the person whom it names in a header of each request (PROXY_USER_HEADER)."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.contrib.auth.middleware import RemoteUserMiddleware
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from voiceapp.accounts.addresses import canonical


class ProxySignIn(RemoteUserMiddleware):
    """Believes the header of proxies in PROXY_USER_NETWORKS; of other peers, it counts as missing."""

    @property
    def header(self) -> str:
        return str(settings.PROXY_USER_HEADER).upper().replace("-", "_")

    async def aprocess_request(self, request: HttpRequest) -> None:
        name = request.META.pop(header := f"HTTP_{self.header}", "")
        if is_user_name(name) and _is_believed(request.scope.get("state", {}).get("peer", "")):
            request.META[header] = name
        await super().aprocess_request(request)


def is_user_name(name: str) -> bool:
    """Return whether a login may have this name."""
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError:
        return False
    return True


def _is_believed(peer: str) -> bool:
    networks = map(ipaddress.ip_network, settings.PROXY_USER_NETWORKS)
    address = canonical(peer)
    return address != "" and any(ipaddress.ip_address(address) in network for network in networks)
