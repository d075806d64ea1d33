"""PostgreSQL: a pool of connections, each of which may fall silent.

A server that is frozen, or behind a network that swallows what is sent, leaves its clients waiting: `statement_timeout`
is the server's own, and its system goes on acknowledging what it receives. So the client stops waiting by itself, asks
for its statement to be canceled, and drops the connection.
"""

from __future__ import annotations

from typing import TypeVar

import psycopg
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from voiceapp.database.patience import waiting

CANCEL_S = 0.4
"""Time for telling a server to cancel a query; one that is frozen does not hear it."""
LOOK_EVERY_S = 0.1

T = TypeVar("T")


class Connection(psycopg.Connection[TupleRow]):
    """Waits for a reply as long as the request at hand may wait."""

    def wait(self, gen: PQGen[T], interval: float = LOOK_EVERY_S, timeout: float | None = None) -> T:
        with waiting() as left_s:
            if left_s is None or (timeout is not None and timeout <= left_s):
                return super().wait(gen, interval, timeout)
            try:
                return super().wait(gen, interval, left_s)
            except _WaitTimeout:
                self._abandon()
                raise psycopg.OperationalError("the database did not reply in time") from None

    def _abandon(self) -> None:
        """A statement that waits for a lock would be carried out later, without a caller."""
        try:
            self.cancel_safe(timeout=CANCEL_S)
        except psycopg.Error:  # it is not to be reached
            pass
        finally:
            self.pgconn.finish()


class Pool(ConnectionPool[Connection]):
    """Lets its clients wait as long as the request at hand may wait."""

    def getconn(self, timeout: float | None = None) -> Connection:
        with waiting() as left_s:
            longest_s = self.timeout if timeout is None else timeout
            return super().getconn(longest_s if left_s is None else min(longest_s, left_s))


class DatabaseWrapper(base.DatabaseWrapper):
    def ensure_connection(self) -> None:
        """Connect anew after a loss: Django does that between requests, and a thread of sockets has none."""
        if self.connection is not None and self.connection.closed and not self.in_atomic_block:
            self.close()
        super().ensure_connection()

    @property
    def pool(self) -> Pool | None:
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        pools: dict[str, Pool] = self._connection_pools
        if self.alias not in pools:
            made = Pool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                connection_class=Connection,
                open=False,
                configure=self._configure_connection,
                **options,
            )
            pools.setdefault(self.alias, made)  # of several made at once, the first
        return pools[self.alias]
