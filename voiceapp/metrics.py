"""Prometheus metrics of this process: every counter, gauge and histogram, by the names that `/metrics` shows.

Names have the prefix `voiceapp_`, base units and few labels: nothing that a caller may choose becomes a label.
"""

from __future__ import annotations

import asyncio
import time
from typing import NoReturn

from prometheus_client import Counter, Gauge, Histogram, Info

from voiceapp.load import load

REPLY_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Seconds: finer where a caller notices."""
WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

build = Info("voiceapp_build", "Version of this server")
sessions = Gauge("voiceapp_sessions", "Realtime sessions that are open", ["transport"])
sessions_ended = Counter("voiceapp_sessions_ended", "Realtime sessions that ended", ["transport", "code"])
turns = Counter("voiceapp_turns", "Turns with a response, by how it ended", ["status", "spoken"])
turn_seconds = Histogram(
    "voiceapp_turn_seconds",
    "Spoken turns, from the caller's last sound until the turn's end was decided, its words were known, the reply's"
    " first token and its first sound were there",
    ["stage"],
    buckets=REPLY_BUCKETS,
)
requests = Histogram(
    "voiceapp_http_request_seconds", "HTTP requests, until their end", ["status"], buckets=(*REPLY_BUCKETS, 30.0, 60.0)
)
lane_wait_seconds = Histogram(
    "voiceapp_lane_wait_seconds", "Wait of inference work for a thread", ["lane"], buckets=WAIT_BUCKETS
)
lane_pending = Gauge("voiceapp_lane_pending", "Inference work that runs or waits", ["lane"])
event_loop_lag_seconds = Histogram(
    "voiceapp_event_loop_lag_seconds", "Lateness of a timer on the event loop", buckets=WAIT_BUCKETS
)
event_loop_tasks = Gauge("voiceapp_event_loop_tasks", "Tasks of asyncio that are not done")
seats = Gauge("voiceapp_seats", "Seats for sessions in this process, by whether they are taken", ["state"])
admission_room = Gauge("voiceapp_admission_room", "Sessions that may begin at once, by MAX_SESSIONS and TURN_BUDGET_MS")
database_connections = Gauge(
    "voiceapp_database_connections",
    "Connections to PostgreSQL that this process has open, those of them that are idle, and requests that wait for one",
    ["state"],
)
open_work = Gauge("voiceapp_open_work", "Tasks and deliveries that are not over, in all processes", ["queue", "status"])
ready = Gauge("voiceapp_ready", "1 while a conversation can start")
oldest_due_seconds = Gauge("voiceapp_oldest_due_seconds", "Age of the oldest work that is due", ["queue"])
service_up = Gauge("voiceapp_service_up", "0 if a service that models run on did not answer last", ["service"])

LAG_PERIOD_S = 0.5


def observe_turn(marks_ms: dict[str, int | None]) -> None:
    """Count the latencies of a spoken turn: milliseconds since the caller's last sound, by stage."""
    for stage, ms in marks_ms.items():
        if ms is not None:
            turn_seconds.labels(stage).observe(ms / 1000)


async def measure_lag() -> NoReturn:
    """Measure how late the running event loop wakes a timer, until cancelled."""
    while True:
        due = time.monotonic() + LAG_PERIOD_S
        await asyncio.sleep(LAG_PERIOD_S)
        lag_s = max(0.0, time.monotonic() - due)
        event_loop_lag_seconds.observe(lag_s)
        load().loop_waited(lag_s)
