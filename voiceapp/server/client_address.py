"""The address of a client: the peer, or the one that our own proxies saw."""

from __future__ import annotations

from voiceapp.accounts.addresses import canonical
from voiceapp.accounts.auth import caller_from_bearer
from voiceapp.accounts.models import Scope as AccountScope
from voiceapp.database.thread import DatabaseUnavailable
from voiceapp.errors import InvalidApiKey
from voiceapp.http.refusals import Scope

LOOPBACK = ("127.0.0.1", "::1")


def client_address(scope: Scope, trusted_proxies: int) -> str | None:
    """The address of the client, which limits and logs go by; None without a peer.

    Each of so many proxies of ours appended to X-Forwarded-For the peer that it saw. Entries further left were written
    by the client and prove nothing. With fewer entries, or where one is no address, it is the peer's own.
    """
    if not (peer := scope.get("client")):
        return None
    entries = _forwarded(scope, b"x-forwarded-for")
    seen = canonical(entries[-trusted_proxies]) if 1 <= trusted_proxies <= len(entries) else ""
    return seen or canonical(peer[0]) or str(peer[0])


def forwarded_scheme(scope: Scope, trusted_proxies: int) -> str | None:
    """`http` or `https` as the outermost of so many proxies of ours saw it, from X-Forwarded-Proto; None if unknown.

    Each of them added an entry at the right, or put its own in the place of all others. Entries further left than there
    are proxies were written by the client.
    """
    if trusted_proxies < 1:
        return None
    scheme = _forwarded(scope, b"x-forwarded-proto")[-trusted_proxies:][0].lower()
    return scheme if scheme in ("http", "https") else None


def _forwarded(scope: Scope, header: bytes) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == header]
    return [entry.strip() for entry in ",".join(values).split(",")]


async def is_operator(scope: Scope) -> bool:
    """Return whether a request comes from this machine past no proxy, or with a key of the scope `admin`."""
    headers = dict(scope["headers"])
    if scope["client"] and scope["client"][0] in LOOPBACK and b"x-forwarded-for" not in headers:
        return True
    try:
        caller = await caller_from_bearer(headers.get(b"authorization", b"").decode("latin-1"))
    except (InvalidApiKey, DatabaseUnavailable):
        return False
    return AccountScope.ADMIN in caller.scopes and not caller.is_temporary
