"""Whether a conversation can start here, and if not, what to do about it.

`/healthz` says the process lives; `/readyz` says it can serve. Both are answered before Django, because probes come by
address, where ALLOWED_HOSTS answers 400 and the redirect to https 301.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from voiceapp.drain import drain_event
from voiceapp.engines.embedded import weights

logger = logging.getLogger(__name__)

FRESH_S = 1.0
"""How long one look at the database serves: anybody may ask, as often as they like."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no conversation can start now: a code for programs, a sentence with the remedy for people."""

    code: str
    message: str


class Readiness:
    """What this process knows about itself."""

    def __init__(self) -> None:
        self.warming = False
        """Engines are being loaded."""
        self.warm_up_failed = False
        self._migrated = False
        self._looked_at = 0.0
        self._last: list[Reason] | None = None
        self._looking = False

    async def reasons(self) -> list[Reason]:
        """Empty when a conversation can start."""
        own: list[Reason] = []
        if drain_event().begun:
            own.append(Reason("draining", "The server is stopping; try again in a moment."))
        if self.warming:
            own.append(Reason("warming_up", "The engines are being loaded; this takes a few seconds."))
        if self.warm_up_failed:
            own.append(Reason("engines_failed", "An engine could not be loaded; the server's log says why."))
        return own + await self._outside()

    async def _outside(self) -> list[Reason]:
        fresh = time.monotonic() - self._looked_at < FRESH_S
        if self._last is None or not (fresh or self._looking):
            self._looking = True
            try:
                # Not the shared thread: a slow query elsewhere must not make this process look unwell.
                self._last = await sync_to_async(self._look, thread_sensitive=False)()
                self._looked_at = time.monotonic()
            finally:
                self._looking = False
        return self._last

    def _look(self) -> list[Reason]:
        found = self._database()
        if missing := weights.missing():
            found.append(
                Reason(
                    "models_missing",
                    f"Voice models missing: {', '.join(missing)}; run `make models`, or without make "
                    "`python manage.py fetch_models`.",
                )
            )
        return found

    def _database(self) -> list[Reason]:
        connection = connections["default"]
        try:
            if self._migrated:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT 1")
            else:
                executor = MigrationExecutor(connection)
                plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
                if plan:
                    return [
                        Reason(
                            "migrations_pending",
                            f"{len(plan)} database migrations are not applied; run `python manage.py migrate`.",
                        )
                    ]
                self._migrated = True
        except DatabaseError:
            logger.warning("The database does not answer", exc_info=True)
            return [Reason("database_unreachable", "The database does not answer; check DATABASE_URL and its server.")]
        finally:
            connection.close()  # this thread belongs to a pool and may not come here again
        return []


_process = Readiness()


def process_readiness() -> Readiness:
    """The readiness of this process."""
    return _process


async def readiness() -> list[Reason]:
    """Why no conversation can start in this process now; empty when one can."""
    return await _process.reasons()


async def readiness_answer(readiness: Readiness) -> tuple[int, dict[str, Any]]:
    """Status and body of `/readyz`."""
    reasons = await readiness.reasons()
    if not reasons:
        return 200, {"status": "ready"}
    return 503, {"status": "not ready", "reasons": [asdict(reason) for reason in reasons]}
