"""Answers to Prometheus: the metrics of this process, and what the database and the lanes say at that moment."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection
from prometheus_client import generate_latest

from voiceapp import metrics
from voiceapp.accounts.seats import seats
from voiceapp.database.patience import waits_at_most
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.models.providers import CONVERSATION, in_use, provider_of, service_states
from voiceapp.health import LOOK_S, Readiness
from voiceapp.leases.rows import open_work


async def scrape(readiness: Readiness) -> bytes:
    """Return every metric in Prometheus' text format. Without its database, those that come from there are missing."""
    is_ready = not await readiness.reasons()
    try:
        with waits_at_most(LOOK_S):
            counts = await sync_to_async(open_work, thread_sensitive=False)()
    except DatabaseError:
        counts = {}
    # Without an await from here on: another scrape would read what is half set.
    metrics.build.info({"version": settings.VERSION})
    metrics.ready.set(is_ready)
    metrics.event_loop_tasks.set(len(asyncio.all_tasks()))
    metrics.seats.labels("taken").set(seats().open_sessions)
    metrics.seats.labels("free").set(max(0, settings.MAX_SESSIONS - seats().open_sessions))
    metrics.admission_room.set(seats().room)
    if pool := getattr(connection, "pool", None):
        known = pool.get_stats()
        for name, figure in (("open", "pool_size"), ("idle", "pool_available"), ("waiting", "requests_waiting")):
            metrics.database_connections.labels(name).set(known.get(figure, 0))
    metrics.oldest_due_seconds.clear()
    for queue, waited_s in readiness.oldest_due_s.items():
        metrics.oldest_due_seconds.labels(queue).set(waited_s)
    for lane in lanes():
        metrics.lane_pending.labels(lane.name).set(lane.pending)
    for state in service_states():
        metrics.service_up.labels(state.name).set(state.trouble is None)
    for card in (card for kind in CONVERSATION for card in in_use(kind) if not card.runs_here):
        metrics.service_up.labels(f"{card.kind} server").set(provider_of(card).trouble is None)
    metrics.open_work.clear()
    for (queue, status), count in counts.items():
        metrics.open_work.labels(queue, status).set(count)
    return generate_latest()
