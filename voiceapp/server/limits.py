"""Limits of one client: connections, bytes, time.

`ServerLimits` are the numbers, `Gate` counts connections; daphne's protocols hold requests to both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.conf import settings

from voiceapp.http.roots import canonical

BACKLOG = 1024
"""Connections that wait to be accepted."""
UNREAD_HIGH = 64
"""Messages waiting for the application at which a socket stops reading; it reads on at half, or at none."""
UNREAD_BYTES = 256 * 1024
"""Unread bytes of a WebSocket: one message may be larger, and the next waits in its client's connection."""
LINGER_BYTES = 16 * 1024 * 1024
"""Largest part of a refused body that is read and thrown away."""

OPERATORS_WAIT_S = 30.0
"""Time for a page that an operator waits for: it may look at every row there is."""

UPLOAD_PATHS = frozenset(
    {
        "/compatible-mode/v1/audio/transcriptions",
        "/compatible-mode/v1/audio/translations",
        "/api/v1/uploads",
        "/api/v1/uploads/direct",
    }
)
"""Paths to which clients send files. Everywhere else a body is JSON that is read as a whole."""

TOO_LARGE = "The request's body is larger than {} bytes."
TOO_SLOW = "The request's body did not arrive within {:g} s."
MALFORMED = (
    "The request is not valid HTTP/1.1. Send its length in Content-Length, or `Transfer-Encoding: chunked` alone."
)
HEADERS_TOO_SLOW = "The request's headers did not arrive within {:g} s."


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The numbers of one server process."""

    connections: int = 2000
    """Open connections in total; one more is closed unanswered."""
    connections_per_address: int = 100
    """Open connections of one address; behind a proxy, requests and sockets served at once for one address."""
    header_timeout_s: float = 10.0
    """A request's headers must be complete this long after its first byte (the first: after connecting)."""
    body_timeout_s: float = 30.0
    """A request's body must be complete this long after its headers."""
    send_timeout_s: float = 30.0
    """A connection whose client takes nothing of what is sent for this long is cut."""
    body_bytes: int = 2 * 1024 * 1024
    upload_bytes: int = 25 * 1024 * 1024
    """Instead of `body_bytes`, where recordings are uploaded."""
    linger_s: float = 2.0
    """Seconds for which a refused body is still read and thrown away."""
    message_bytes: int = 1024 * 1024
    """Largest WebSocket message; a larger one ends the connection with 1009."""
    ping_s: float = 20.0
    """Silence after which an open socket is pinged; without an answer for as long again it is dropped."""
    drain_s: float = 20.0
    """Seconds that a stopping server waits for requests in progress."""
    database_wait_s: float = 3.5
    """Seconds that a request waits for the database in all."""
    operators_path: str = "/admin/"
    """Pages below it look at many rows and may take longer."""
    trusted_proxies: int = 0
    """Entries at the right of X-Forwarded-For that our own proxies wrote; 0: the header is not looked at."""

    @classmethod
    def from_settings(cls) -> ServerLimits:
        return cls(
            connections=settings.MAX_CONNECTIONS,
            connections_per_address=settings.MAX_CONNECTIONS_PER_ADDRESS,
            header_timeout_s=settings.HEADER_TIMEOUT_S,
            body_timeout_s=settings.BODY_TIMEOUT_S,
            send_timeout_s=settings.SEND_TIMEOUT_S,
            body_bytes=settings.MAX_BODY_BYTES,
            upload_bytes=max(settings.MAX_UPLOAD_BYTES, settings.MAX_BODY_BYTES),
            linger_s=settings.LINGER_S,
            message_bytes=settings.MAX_MESSAGE_BYTES,
            ping_s=settings.PING_S,
            drain_s=settings.DRAIN_S,
            database_wait_s=settings.DATABASE_WAIT_S,
            operators_path=f"/{settings.ADMIN_PATH}",
            trusted_proxies=settings.TRUSTED_PROXY_COUNT if settings.TRUST_PROXY else 0,
        )

    def database_wait_s_at(self, path: str) -> float:
        return (
            max(OPERATORS_WAIT_S, self.database_wait_s)
            if path.startswith(self.operators_path)
            else self.database_wait_s
        )

    def body_bytes_at(self, path: str) -> int:
        return self.upload_bytes if canonical(path).rstrip("/") in UPLOAD_PATHS else self.body_bytes


class Gate:
    """Counts who is inside, in total and per address."""

    def __init__(self, total: int, per_address: int) -> None:
        self.total = total
        self.per_address = per_address
        self._inside = 0
        self._by_address: Counter[str] = Counter()

    @classmethod
    def for_connections(cls, limits: ServerLimits) -> Gate:
        """The gate at the listening socket. Behind a proxy every peer is the proxy, so only the total counts."""
        return cls(limits.connections, limits.connections if limits.trusted_proxies else limits.connections_per_address)

    def admit(self, address: str) -> bool:
        """Count one more in and return True, or return False; what was admitted must be released once."""
        if self._inside >= self.total or self._by_address[address] >= self.per_address:
            return False
        self._inside += 1
        self._by_address[address] += 1
        return True

    def release(self, address: str) -> None:
        self._inside -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
