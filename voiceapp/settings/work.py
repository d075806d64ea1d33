"""Tasks and webhooks."""

from __future__ import annotations

from voiceapp.settings.environment import env, network, step_s
from voiceapp.settings.installation import DEBUG, REDIS_URL

# ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TASK_KINDS: list[str] = [
    "voiceapp.speech.transcription_tasks.FileTranscription",
    "voiceapp.speech.synthesis_tasks.LongSynthesis",
    "voiceapp.generation.batch.ChatBatch",
    "voiceapp.retrieval.batch.EmbeddingBatch",
    "voiceapp.retrieval.batch.RerankBatch",
    "voiceapp.images.kinds.TextToImage",
    "voiceapp.images.kinds.ImageToImage",
    "voiceapp.images.kinds.MessageToImage",
    "voiceapp.images.kinds.TextToVideo",
    "voiceapp.images.kinds.ImageToVideo",
]
"""What kinds of task there are, each where the room is that does the work (`voiceapp.tasks.kinds.TaskKind`)."""

TASK_ENGINE: str = env.str("TASK_ENGINE", default="embedded")
"""Who works on tasks and deliveries: `embedded`, a thread of the server; `worker`, processes of `manage.py worker`; or
`celery`, workers of a Celery (`requirements-celery.txt`)."""

CELERY_BROKER_URL: str = env.str("CELERY_BROKER_URL", default="")
"""Where Celery's messages go, such as redis://127.0.0.1:6379/1; empty takes REDIS_URL."""
CELERY_BROKER_URL = CELERY_BROKER_URL or REDIS_URL

TASK_CAPACITY: int = env.int("TASK_CAPACITY", default=4)
"""How many tasks one process works on at once; beside them, one of an account that has none under way."""

TASK_LEASE_S: float = env.float("TASK_LEASE_S", default=30)
"""After how many seconds without a sign of life from its worker a task, or a delivery, is begun again by another."""

FETCH_ALLOWED_NETWORKS: list[str] = env.list("FETCH_ALLOWED_NETWORKS", cast=network, default=[])
"""Networks, such as 192.168.7.0/24, that are no public ones and from which tasks may fetch files."""

TASK_RETENTION_HOURS: float = env.float("TASK_RETENTION_HOURS", default=24)
"""How long a task that is over can be asked for, with its files (interface specification, Limits)."""

UPLOAD_HOURS: float = env.float("UPLOAD_HOURS", default=48)
"""How long a file that was sent for tasks is kept."""
UPLOAD_QUOTA_BYTES: int = env.int("UPLOAD_QUOTA_BYTES", default=1024**3)
"""How many bytes of them an account may have at once; one file may have MAX_UPLOAD_BYTES."""

RESULT_QUOTA_BYTES: int = env.int("RESULT_QUOTA_BYTES", default=5 * 1024**3)
"""How many bytes of results of tasks an account may have at once."""
TASK_MAX_AUDIO_S: float = env.float("TASK_MAX_AUDIO_S", default=4 * 3600)
"""How many seconds of sound one task may speak."""

TASK_MAX_WAITING: int = env.int("TASK_MAX_WAITING", default=10_000)
"""How many tasks of one account may wait or run at once."""

MAX_TASK_STREAMS: int = env.int("MAX_TASK_STREAMS", default=500)
"""Streams of events about tasks open at once in this process; beyond it a new one is refused with 429."""
MAX_TASK_STREAMS_PER_ACCOUNT: int = env.int("MAX_TASK_STREAMS_PER_ACCOUNT", default=32)

# ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WEBHOOK_ALLOWED_NETWORKS: list[str] = env.list(
    "WEBHOOK_ALLOWED_NETWORKS", cast=network, default=["127.0.0.1/32", "::1/128"] if DEBUG else []
)
"""Private networks, such as 192.168.7.0/24, in which receivers may be; in development, this machine."""

WEBHOOK_RETRY_SCHEDULE: list[float] = env.list(
    "WEBHOOK_RETRY_SCHEDULE", cast=step_s, default=[10, 30, 60, 300, 1800, 7200, 18_000, 36_000, 86_400]
)
"""Seconds between the attempts at one delivery; there is one attempt more than steps."""

WEBHOOK_SECRET_KEY: str = env.str("WEBHOOK_SECRET_KEY", default="")
"""What signing secrets are encrypted with in the database; empty takes SECRET_KEY, which then must not get lost."""

WEBHOOK_MAX_WAITING: int = env.int("WEBHOOK_MAX_WAITING", default=10_000)
"""How many events may wait for one receiver at once; the log has further ones, canceled, to be sent again."""

WEBHOOK_RETENTION_DAYS: float = env.float("WEBHOOK_RETENTION_DAYS", default=7)
"""How long an event, its deliveries and their attempts can be looked at, and sent again."""
