"""Tasks and webhooks."""

from __future__ import annotations

from voiceapp.settings.environment import env, network, step_s
from voiceapp.settings.installation import DEBUG, REDIS_URL

# ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TASK_KINDS: list[str] = [
    "voiceapp.speech.transcription_tasks.FileTranscription",
    "voiceapp.speech.synthesis_tasks.LongSynthesis",
    "voiceapp.retrieval.batch.EmbeddingBatch",
    "voiceapp.images.kinds.TextToImage",
    "voiceapp.images.kinds.ImageToImage",
    "voiceapp.images.kinds.MessageToImage",
    "voiceapp.images.kinds.TextToVideo",
    "voiceapp.images.kinds.ImageToVideo",
]
"""Classes of the kinds of task (`voiceapp.tasks.kinds.TaskKind`), each in the room that does the work."""

TASK_ENGINE: str = env.str("TASK_ENGINE", default="embedded")
"""Runner of tasks and deliveries: embedded, a thread of the server; worker, processes of `manage.py worker`; or celery,
workers of a Celery (requirements-celery.txt)."""

CELERY_BROKER_URL: str = env.str("CELERY_BROKER_URL", default="")
"""Broker of Celery, such as redis://127.0.0.1:6379/1; empty takes REDIS_URL."""
CELERY_BROKER_URL = CELERY_BROKER_URL or REDIS_URL

TASK_CAPACITY: int = env.int("TASK_CAPACITY", default=4)
"""Tasks that one process works on at once; beside them, one of an account that has none under way."""

TASK_LEASE_S: float = env.float("TASK_LEASE_S", default=30)
"""Seconds without a sign of life from its worker after which a task, or a delivery, is begun again by another, and from
its server process a conversation counts as over."""

FETCH_ALLOWED_NETWORKS: list[str] = env.list("FETCH_ALLOWED_NETWORKS", cast=network, default=[])
"""Networks, such as 192.168.7.0/24, that are not public and from which tasks may fetch files."""

TASK_RETENTION_HOURS: float = env.float("TASK_RETENTION_HOURS", default=24)
"""Hours for which an ended task can be retrieved, with its files."""

UPLOAD_HOURS: float = env.float("UPLOAD_HOURS", default=48)
"""Hours for which an uploaded file is kept."""
UPLOAD_QUOTA_BYTES: int = env.int("UPLOAD_QUOTA_BYTES", default=1024**3)
"""Bytes of uploads that an account may keep at once; one file may have MAX_UPLOAD_BYTES. A gibibyte without it."""

RESULT_QUOTA_BYTES: int = env.int("RESULT_QUOTA_BYTES", default=5 * 1024**3)
"""Bytes of results of tasks that an account may keep at once. Five gibibytes without it."""
TASK_MAX_AUDIO_S: float = env.float("TASK_MAX_AUDIO_S", default=4 * 3600)
"""Seconds of speech that one task may produce. Four hours without it."""

TASK_MAX_WAITING: int = env.int("TASK_MAX_WAITING", default=10_000)
"""Tasks of one account that may wait or run at once."""

# ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WEBHOOK_ALLOWED_NETWORKS: list[str] = env.list(
    "WEBHOOK_ALLOWED_NETWORKS", cast=network, default=["127.0.0.1/32", "::1/128"] if DEBUG else []
)
"""Private networks, such as 192.168.7.0/24, in which receivers may be. If DEBUG=1, this machine:
127.0.0.1/32,::1/128."""

WEBHOOK_RETRY_SCHEDULE: list[float] = env.list(
    "WEBHOOK_RETRY_SCHEDULE", cast=step_s, default=[10, 30, 60, 300, 1800, 7200, 18_000, 36_000, 86_400]
)
"""Seconds between the attempts at one delivery; there is one attempt more than steps."""

WEBHOOK_SECRET_KEY: str = env.str("WEBHOOK_SECRET_KEY", default="")
"""Key that encrypts signing secrets in the database; empty takes SECRET_KEY, which then must not get lost. Within an
hour of a change they are encrypted anew, if the value before stands in SECRET_KEY_FALLBACKS."""

WEBHOOK_MAX_WAITING: int = env.int("WEBHOOK_MAX_WAITING", default=10_000)
"""Events that may wait for one receiver at once; the log has further ones, canceled, to be sent again."""

WEBHOOK_RETENTION_DAYS: float = env.float("WEBHOOK_RETENTION_DAYS", default=7)
"""Days for which an event, its deliveries and their attempts can be looked at, and sent again."""
