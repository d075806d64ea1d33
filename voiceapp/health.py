"""Readiness of this process for conversations, and the remedy when it is not ready.

`/healthz` says the process lives; `/readyz` says it can serve. Both are answered before Django, because probes come by
address, where ALLOWED_HOSTS answers 400 and the redirect to https 301.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from voiceapp.database.patience import waits_at_most
from voiceapp.disk import disks
from voiceapp.drain import drain_event
from voiceapp.engines.models import providers
from voiceapp.engines.models.service_states import ServiceState
from voiceapp.engines.models.weights import WeightsMissing
from voiceapp.errors import EngineError
from voiceapp.leases.rows import oldest_due_s

logger = logging.getLogger(__name__)

LOOK_S = 2.0
"""Time for a look at the database: one that is frozen is as good as gone."""
FRESH_S = 1.0
"""Time for which one look at the database serves, since anybody may ask, as often as they like."""


@dataclass(frozen=True, slots=True)
class NotReadyReason:
    """Reason why no conversation can start now: a code for programs, a sentence for people."""

    code: str
    message: str
    remedy: str = ""
    """Remedy for operators; callers and visitors never read it."""
    is_of_models: bool = False
    """A model that conversations use cannot serve; others may."""

    @property
    def for_operators(self) -> str:
        """Cause and remedy."""
        return f"{self.message} {self.remedy}".strip()


class Readiness:
    """State of this process that decides on readiness."""

    def __init__(self) -> None:
        self.warming = False
        """Engines are being loaded."""
        self.warm_up_failed = False
        self._migrated = False
        self._looked_at = 0.0
        self._last: list[NotReadyReason] | None = None
        self._looking: asyncio.Event | None = None
        """Set when the look that is under way ends."""
        self.oldest_due_s: dict[str, float] = {}
        """Seconds for which work that is due has waited for a worker, by its kind; as of the last look."""

    async def reasons(self) -> list[NotReadyReason]:
        """Empty when a conversation can start."""
        own: list[NotReadyReason] = []
        if drain_event().begun:
            own.append(NotReadyReason("draining", "The server is stopping; try again in a moment."))
        if self.warming:
            own.append(NotReadyReason("warming_up", "The server is starting; this takes a few seconds."))
        if self.warm_up_failed:
            own.append(NotReadyReason("engines_failed", "An engine could not be loaded.", "The server's log says why."))
        return own + await self._outside()

    async def _outside(self) -> list[NotReadyReason]:
        if self._last is not None and time.monotonic() - self._looked_at < FRESH_S:
            return self._last
        if self._looking is not None:
            if self._last != []:  # what was wrong may be over: all wait for the one look
                await self._looking.wait()
                return await self._outside()
            return self._last
        self._looking = asyncio.Event()
        try:
            await providers.probe()
            # Not the shared thread: a slow query of a request must not make this process look unwell.
            with waits_at_most(LOOK_S):
                self._last = await sync_to_async(self._look, thread_sensitive=False)()
            self._looked_at = time.monotonic()
        finally:
            self._looking.set()
            self._looking = None
        return self._last

    def _look(self) -> list[NotReadyReason]:
        found = self._database()
        if shortage := disks().shortage():
            found.append(NotReadyReason(shortage.code, shortage.message, str(shortage)))
        return found + [reason_of(error) for error in providers.unavailable()]

    def _database(self) -> list[NotReadyReason]:
        connection = connections["default"]
        try:
            if is_read_only(connection):
                return [
                    NotReadyReason(
                        "database_read_only",
                        "The database cannot be written.",
                        f"Let the user of this process write {connection.settings_dict['NAME']} and its folder.",
                    )
                ]
            if not self._migrated:
                executor = MigrationExecutor(connection)
                plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
                if plan:
                    return [
                        NotReadyReason(
                            "migrations_pending",
                            "The database is not set up for this version yet.",
                            f"{len(plan)} migrations are not applied: run `python manage.py migrate`.",
                        )
                    ]
                self._migrated = True
            self.oldest_due_s = oldest_due_s()
        except DatabaseError as error:
            logger.warning("The database does not answer: %s", error)
            return [
                NotReadyReason(
                    "database_unreachable", "The database does not answer.", "Check DATABASE_URL and its server."
                )
            ]
        finally:
            connection.close()  # this thread belongs to a pool and may not come here again
        return []


def is_read_only(connection: BaseDatabaseWrapper) -> bool:
    """Return whether SQLite's file exists and may only be read."""
    if connection.vendor != "sqlite":
        return False
    file = Path(connection.settings_dict["NAME"])
    return file.is_file() and not all(os.access(path, os.W_OK) for path in (file, file.parent))


def reason_of(error: EngineError) -> NotReadyReason:
    """The reason that a model which cannot serve gives."""
    code = "models_missing" if isinstance(error, WeightsMissing) else "model_unavailable"
    return NotReadyReason(code, error.message, error.remedy, is_of_models=True)


_process = Readiness()


def process_readiness() -> Readiness:
    return _process


async def readiness() -> list[NotReadyReason]:
    """Return the reasons why no conversation can start in this process now, with whichever model; each model's
    provider knows of itself (`check`)."""
    return [reason for reason in await _process.reasons() if not reason.is_of_models]


async def readiness_answer(readiness: Readiness, *, for_operators: bool) -> tuple[int, dict[str, Any]]:
    """Return status and body of `/readyz`; only operators read more than codes."""
    reasons = await readiness.reasons()
    answer: dict[str, Any] = {"status": "not ready" if reasons else "ready"}
    if reasons:
        answer["reasons"] = [
            {"code": reason.code, **({"message": reason.for_operators} if for_operators else {})} for reason in reasons
        ]
    if for_operators and (states := providers.service_states()):
        answer["services"] = [_service(state) for state in states]
    if for_operators and readiness.oldest_due_s:
        answer["oldest_due_s"] = readiness.oldest_due_s
    return 503 if reasons else 200, answer


def _service(state: ServiceState) -> dict[str, Any]:
    """Another service, without which this server is ready all the same."""
    return {
        "name": state.name,
        "reachable": state.is_reachable,
        "circuit": state.circuit,
        "message": state.for_operators,
    }
