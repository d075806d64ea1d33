"""The only reader of the environment.

Every variable has a type, a default that works on a laptop and a line in `.env.example`.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from voiceapp.offer import Server, Upstream, chat_cards, image_cards, retrieval_cards, upstream_cards, voice_cards

BASE_DIR = Path(__file__).resolve().parent.parent


class _Env(environ.Env):
    """Names the variable that cannot be read."""

    def get_value(self, var: str, cast: Any = None, *args: Any, **options: Any) -> Any:
        given = self.ENVIRON.get(var)
        if cast is bool and given is not None and given.lower() not in {*self.BOOLEAN_TRUE_STRINGS, *_FALSE}:
            raise ImproperlyConfigured(f"{var} is {given!r}: write 1 or 0.")
        try:
            return super().get_value(var, cast, *args, **options)
        except ValueError as error:
            raise ImproperlyConfigured(f"{var} is {given!r}, which cannot be read: {error}.") from None


_FALSE = ("false", "off", "n", "no", "0", "")

env = _Env()
environ.Env.read_env(BASE_DIR / ".env")


MAX_STEP_S = 366 * 86_400


def _network(text: str) -> str:
    """A network, without the spaces around it."""
    try:
        return str(ipaddress.ip_network(text.strip()))
    except ValueError as error:
        raise ImproperlyConfigured(
            f"FETCH_ALLOWED_NETWORKS and WEBHOOK_ALLOWED_NETWORKS hold networks such as 192.168.7.0/24: {error}."
        ) from None


def _ice_urls(variable: str, kind: str, urls: list[str]) -> list[str]:
    """Addresses of STUN servers or relays (RFC 7064, RFC 7065), without the spaces around them."""
    transport = r"(?:\?transport=(?:udp|tcp))?" if kind == "turn" else ""
    urls = [url.strip() for url in urls]
    for url in urls:
        found = re.fullmatch(rf"{kind}s?:[^\s:/?#@\[\]]+(?::([0-9]+))?{transport}", url)
        if not found or not 0 < int(found[1] or 3478) < 65536:
            raise ImproperlyConfigured(f"{variable} holds URLs such as {kind}:{kind}.example.org:3478, not {url!r}.")
    return urls


def _step_s(text: str) -> float:
    """A step of a schedule, in seconds."""
    try:
        step_s = float(text)
    except ValueError:
        step_s = -1.0
    if not 0 <= step_s <= MAX_STEP_S:
        raise ImproperlyConfigured(f"WEBHOOK_RETRY_SCHEDULE holds seconds, such as 10,30,60: not {text.strip()!r}.")
    return step_s


# ── This installation ────────────────────────────────────────────────────────────────────────────────────────────────

DEBUG: bool = env.bool("DEBUG", default=False)
"""Development: guests may talk, a local account is made on first start, a missing SECRET_KEY is tolerated."""

VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
"""What the program writes: database, models, uploads."""

SECRET_KEY: str = env.str("SECRET_KEY", default="development-only-not-secret" if DEBUG else "")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. Set it to a long random string, or DEBUG=1 to try things out on your own machine."
    )
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
"""Earlier values of SECRET_KEY: what was signed or encrypted with them is still good, while they stand here."""

ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
"""Origins such as https://voice.example.org from which the page may open its socket when they differ from the host."""

# ── Applications and the request line ────────────────────────────────────────────────────────────────────────────────

INSTALLED_APPS = [
    "voiceapp.server",
    "voiceapp.accounts",
    "voiceapp.realtime",
    "voiceapp.tasks",
    "voiceapp.webhooks",
    "voiceapp.pages",
    "voiceapp.apps.OperatorsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "csp",
]

MIDDLEWARE = [
    "voiceapp.envelope.EnvelopeMiddleware",  # first: it takes API requests past everything that only pages need
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "voiceapp.urls"
ASGI_APPLICATION = "voiceapp.asgi.application"
APPEND_SLASH = False  # every operation answers with and without the slash; a redirect would lose a POST's body

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'voiceapp.sqlite3'}")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    VAR_DIR.mkdir(parents=True, exist_ok=True)  # SQLite makes the file, not the folder
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        }
    )
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # Async views run in many short threads; without a pool each would open a connection of its own.
    # A call that gets none of its connections in time (seconds) is refused.
    pool = {"min_size": 1, "max_size": 8, "timeout": 5}
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("pool", pool)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL: str = env.str("REDIS_URL", default="")
"""Where several processes count rate limits together (`requirements-redis.txt`); empty counts in each process."""

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},  # login attempts are counted here; at 300, guessing would push counts out
    }
}

# ── Files of tasks ───────────────────────────────────────────────────────────────────────────────────────────────────

TASK_STORAGE: str = env.str("TASK_STORAGE", default="")
"""Where tasks keep what they were given and have made: empty is a folder in VAR_DIR, s3://bucket/folder a bucket
(`requirements-s3.txt`). Processes on several machines need a bucket, or a folder that they share."""
AWS_ENDPOINT_URL: str = env.str("AWS_ENDPOINT_URL", default="")
"""Where a server with buckets that is not Amazon's answers, such as https://minio.example.org."""
_task_storage: dict[str, Any] = {
    "BACKEND": "voiceapp.tasks.folders.Folder",
    "OPTIONS": {"location": VAR_DIR / "tasks"},
}
if TASK_STORAGE:
    _bucket = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", TASK_STORAGE)
    if _bucket is None:
        raise ImproperlyConfigured("TASK_STORAGE must be s3://bucket or s3://bucket/folder.")
    _task_storage = {
        "BACKEND": "voiceapp.tasks.buckets.Bucket",
        "OPTIONS": {
            "bucket_name": _bucket[1],
            "location": (_bucket[2] or "").strip("/"),
            "endpoint_url": AWS_ENDPOINT_URL or None,
        },
    }

# ── Static files ─────────────────────────────────────────────────────────────────────────────────────────────────────

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
"""Where `collectstatic` puts what browsers fetch."""
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = DEBUG  # not settings.DEBUG, which tests switch off
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "tasks": _task_storage,
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "voiceapp.storage.ModuleManifestStorage"
    },
}

# ── Words and times ──────────────────────────────────────────────────────────────────────────────────────────────────

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
LOCAL_TIME_ZONE: str = env.str("LOCAL_TIME_ZONE", default="UTC")
"""IANA name of the zone in which the assistant tells the time when the caller's own is not known."""

# ── Security ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TRUST_PROXY: bool = env.bool("TRUST_PROXY", default=False)
"""A proxy that we know sits in front and sets X-Forwarded-Proto and X-Forwarded-For."""
TRUSTED_PROXY_COUNT: int = env.int("TRUSTED_PROXY_COUNT", default=1)
"""How many entries from the right of X-Forwarded-For our own proxies wrote."""
if TRUST_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

HTTPS: bool = env.bool("HTTPS", default=not DEBUG)
"""People reach this server by https: secure cookies, HSTS and a redirect from http."""
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS: int = env.int("SECURE_HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_AGE = 12 * 3600
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "worker-src": [SELF],
        "connect-src": [SELF],
        "media-src": [SELF, "blob:"],
        "img-src": [SELF, "data:"],
        "style-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "voice"
ADMIN_PATH: str = env.str("ADMIN_PATH", default="admin/")
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

# ── The server process ───────────────────────────────────────────────────────────────────────────────────────────────

PORT: int = env.int("PORT", default=8000)
DRAIN_S: float = env.float("DRAIN_S", default=20.0)
"""How long a stopping server waits for answers in progress."""
MAX_CONNECTIONS: int = env.int("MAX_CONNECTIONS", default=2000)
MAX_CONNECTIONS_PER_ADDRESS: int = env.int("MAX_CONNECTIONS_PER_ADDRESS", default=100)
HEADER_TIMEOUT_S: float = env.float("HEADER_TIMEOUT_S", default=10.0)
BODY_TIMEOUT_S: float = env.float("BODY_TIMEOUT_S", default=30.0)
MAX_BODY_BYTES: int = env.int("MAX_BODY_BYTES", default=2 * 1024 * 1024)
MAX_UPLOAD_BYTES: int = env.int("MAX_UPLOAD_BYTES", default=25 * 1024 * 1024)
"""The same where recordings are uploaded."""
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES  # Django's own limit, files left out
ALLOW_EPHEMERAL_DB: bool = env.bool("ALLOW_EPHEMERAL_DB", default=False)

# ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_SESSIONS: int = env.int("MAX_SESSIONS", default=64)
"""Conversations open at once in this process; beyond it a new one is refused with 429."""
MAX_SESSIONS_PER_ACCOUNT: int = env.int("MAX_SESSIONS_PER_ACCOUNT", default=32)
SESSION_LIFETIME_S: int = env.int("SESSION_LIFETIME_S", default=120 * 60)
REVOKE_CLOSES_SESSIONS: bool = env.bool("REVOKE_CLOSES_SESSIONS", default=True)
TRANSCRIPT_DAYS: int = env.int("TRANSCRIPT_DAYS", default=30)
"""How long the words of a conversation are kept; 0 keeps none."""

# ── WebRTC ───────────────────────────────────────────────────────────────────────────────────────────────────────────

RTC_ENABLED: bool = env.bool("RTC_ENABLED", default=True)
"""Off where neither UDP nor a relay reaches this server: pages then do not try. Offers are still passed on."""
ICE_SERVERS: list[str] = _ice_urls("ICE_SERVERS", "stun", env.list("ICE_SERVERS", default=[]))
"""STUN servers, such as stun:stun.example.org:3478; a server with a public address needs none."""
TURN_URLS: list[str] = _ice_urls("TURN_URLS", "turn", env.list("TURN_URLS", default=[]))
"""The relay for callers behind strict networks, such as turn:turn.example.org:3478?transport=tcp."""
TURN_SECRET: str = env.str("TURN_SECRET", default="")
"""The relay's `static-auth-secret`: credentials for a limited time are made with it."""
if TURN_URLS and not TURN_SECRET:
    raise ImproperlyConfigured("TURN_URLS is set: set TURN_SECRET to the relay's static-auth-secret as well.")
RTC_FORCE_RELAY: bool = env.bool("RTC_FORCE_RELAY", default=False)
"""This server itself is reached through the relay only: for hosts that let no UDP in."""
if RTC_FORCE_RELAY and not TURN_URLS:
    raise ImproperlyConfigured("RTC_FORCE_RELAY needs a relay: set TURN_URLS and TURN_SECRET.")
if RTC_FORCE_RELAY and all(url.startswith("turns:") and url.endswith("=udp") for url in TURN_URLS):
    raise ImproperlyConfigured("RTC_FORCE_RELAY needs a relay that this server can use: it knows no turns: over UDP.")
RTC_PUBLIC_ADDRESS: str = env.str("RTC_PUBLIC_ADDRESS", default="")
"""The Internet address under which a router maps UDP onto this machine, port by port."""
try:
    ipaddress.ip_address(RTC_PUBLIC_ADDRESS or "::")
except ValueError:
    raise ImproperlyConfigured("RTC_PUBLIC_ADDRESS must be an Internet address, such as 203.0.113.9.") from None
RTC_PORT_RANGE: str = env.str("RTC_PORT_RANGE", default="")
"""UDP ports for media, such as 40000-40099; empty lets the system choose."""
if RTC_PORT_RANGE:
    _ports = re.fullmatch(r"([0-9]{4,5})-([0-9]{4,5})", RTC_PORT_RANGE)
    if not _ports or not 1024 <= int(_ports[1]) <= int(_ports[2]) <= 65535:
        raise ImproperlyConfigured("RTC_PORT_RANGE must be two ports from 1024 to 65535, such as 40000-40099.")
RTC_ALLOW_PRIVATE: bool = env.bool("RTC_ALLOW_PRIVATE", default=DEBUG)
"""Try candidates with addresses that are not public. Off, a caller cannot have this server probe its own network."""

# ── Who pays ─────────────────────────────────────────────────────────────────────────────────────────────────────────

RATE_LIMITS: dict[str, str] = {
    "default": "200/1",
    "tokens": "20/1",
    "tasks.query": "20/1",
    "tasks.list": "20/1",
    "tasks.cancel": "20/1",
    "tasks.create": "20/1",
    **env.dict("RATE_LIMITS", default={}),
}
"""Calls an account may make of an operation (`chat`, `embedding`, `rerank`, …) in so many seconds; `off` for no limit.

The task operations' are the interface specification's. It names none for the others: their default only stops a
program that runs away.
"""
QUOTA_ENFORCED: str = env.str("QUOTA_ENFORCED", default="elsewhere")
"""Whom free quotas hold back: calls of models served `elsewhere`, `always` everybody, or `never`.

A model inside this process costs its operator nothing, so by default nobody is refused it; a server elsewhere is
somebody's bill.
"""
FREE_QUOTAS: dict[str, int] = {"rerank": 1_000_000, "embedding": 1_000_000}
"""Tokens by model family that an account has for nothing (interface specification, Limits)."""
FREE_QUOTA_DAYS = 90
LEDGER_PRICES: dict[str, dict[str, int]] = {"rerank": {"input_tokens": 100}, "embedding": {"input_tokens": 70}}
"""Nano-dollars for one of a unit, by model name or family; a model's own entry wins, the unnamed costs nothing."""

# ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TASK_KINDS: list[str] = [
    "voiceapp.compatible.transcribing.Transcribing",
    "voiceapp.compatible.speaking.SpeakingAtLength",
    "voiceapp.generation.batch.ChatBatch",
    "voiceapp.retrieval.batch.EmbeddingBatch",
    "voiceapp.retrieval.batch.RerankBatch",
    "voiceapp.pictures.kinds.Drawing",
    "voiceapp.pictures.kinds.Redrawing",
    "voiceapp.pictures.kinds.DrawingByMessage",
    "voiceapp.pictures.kinds.Filming",
    "voiceapp.pictures.kinds.FilmingFromPicture",
]
"""What kinds of task there are, each where the room is that does the work (`voiceapp.tasks.kinds.Kind`)."""

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

FETCH_ALLOWED_NETWORKS: list[str] = env.list("FETCH_ALLOWED_NETWORKS", cast=_network, default=[])
"""Networks, such as 192.168.7.0/24, that are no public ones and from which tasks may fetch files."""

TASK_RETENTION_HOURS: float = env.float("TASK_RETENTION_HOURS", default=24)
"""How long a task that is over can be asked for, with its files (interface specification, Limits)."""

UPLOAD_HOURS: float = env.float("UPLOAD_HOURS", default=48)
"""How long a file that was sent for tasks is kept."""
UPLOAD_QUOTA_BYTES: int = env.int("UPLOAD_QUOTA_BYTES", default=1024**3)
"""How many bytes of them an account may have at once; one file may have MAX_UPLOAD_BYTES."""

TASK_MAX_WAITING: int = env.int("TASK_MAX_WAITING", default=10_000)
"""How many tasks of one account may wait or run at once."""

MAX_TASK_STREAMS: int = env.int("MAX_TASK_STREAMS", default=500)
"""Streams of events about tasks open at once in this process; beyond it a new one is refused with 429."""
MAX_TASK_STREAMS_PER_ACCOUNT: int = env.int("MAX_TASK_STREAMS_PER_ACCOUNT", default=32)

# ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WEBHOOK_ALLOWED_NETWORKS: list[str] = env.list("WEBHOOK_ALLOWED_NETWORKS", cast=_network, default=[])
"""Networks, such as 192.168.7.0/24, that are no public ones and in which receivers may be."""

WEBHOOK_RETRY_SCHEDULE: list[float] = env.list(
    "WEBHOOK_RETRY_SCHEDULE", cast=_step_s, default=[10, 30, 60, 300, 1800, 7200, 18_000, 36_000, 86_400]
)
"""Seconds between the attempts at one delivery; there is one attempt more than steps."""

WEBHOOK_SECRET_KEY: str = env.str("WEBHOOK_SECRET_KEY", default="")
"""What signing secrets are encrypted with in the database; empty takes SECRET_KEY, which then must not get lost."""

WEBHOOK_MAX_WAITING: int = env.int("WEBHOOK_MAX_WAITING", default=10_000)
"""How many events may wait for one receiver at once; the log has further ones, canceled, to be sent again."""

WEBHOOK_RETENTION_DAYS: float = env.float("WEBHOOK_RETENTION_DAYS", default=7)
"""How long an event, its deliveries and their attempts can be looked at, and sent again."""

# ── The page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PUBLIC_PAGE: str = env.str("PUBLIC_PAGE", default="guest" if DEBUG else "login")
"""Who may talk on the page: `off`, `login` (signed-in people) or `guest` (everybody, within the guest limits)."""
GUEST_SESSIONS_PER_ADDRESS: int = env.int("GUEST_SESSIONS_PER_ADDRESS", default=20 if DEBUG else 2)
GUEST_SESSIONS_PER_HOUR: int = env.int("GUEST_SESSIONS_PER_HOUR", default=1000 if DEBUG else 10)
GUEST_SESSION_S: int = env.int("GUEST_SESSION_S", default=7200 if DEBUG else 180)
GUEST_SESSIONS_TOTAL: int = env.int("GUEST_SESSIONS_TOTAL", default=50)

# ── Models ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MODELS_DIR = Path(env.str("MODELS_DIR", default=str(VAR_DIR / "models")))
VOICE_THREADS: int = env.int("VOICE_THREADS", default=2)
"""Threads for turn detection and recognition; about the number of cores."""
DOCUMENTS_DIR: str = env.str("DOCUMENTS_DIR", default="")
"""A folder of .md and .txt files the embedded assistant answers from, besides this product's manual."""
CHAT_BASE_URL: str = env.str("CHAT_BASE_URL", default="")
"""Base address of an OpenAI-compatible server, such as http://127.0.0.1:11434/v1; empty uses the embedded assistant."""
CHAT_API_KEY: str = env.str("CHAT_API_KEY", default="")
CHAT_MODEL: str = env.str("CHAT_MODEL", default="")
CHAT_TIMEOUT_S: float = env.float("CHAT_TIMEOUT_S", default=60.0)
CHAT_MODEL_DIR: str = env.str("CHAT_MODEL_DIR", default="")
"""A folder with a language model for onnxruntime-genai, run in this process (`requirements-genai.txt`)."""
CHAT_SEES_IMAGES: bool = env.bool("CHAT_SEES_IMAGES", default=False)
"""Whether that server's model takes images."""
UPSTREAM_BASE_URL: str = env.str("UPSTREAM_BASE_URL", default="")
"""Where a service elsewhere answers `/api/v1/webrtc/realtime`, such as https://voice.example.org; empty offers none."""
UPSTREAM_API_KEY: str = env.str("UPSTREAM_API_KEY", default="")
UPSTREAM_REALTIME_MODEL: str = env.str("UPSTREAM_REALTIME_MODEL", default="")
"""The service's name for its model. Callers find it here under this name and as `upstream`."""
UPSTREAM_IMAGE_MODELS: list[str] = env.list("UPSTREAM_IMAGE_MODELS", default=[])
"""The service's models that draw; callers find them here under the same names, as tasks."""
UPSTREAM_VIDEO_MODELS: list[str] = env.list("UPSTREAM_VIDEO_MODELS", default=[])
"""The service's models that make films."""
IMAGES_BASE_URL: str = env.str("IMAGES_BASE_URL", default="")
"""Base address of a server with `/images/generations`, such as http://127.0.0.1:8080/v1; empty draws nothing."""
IMAGES_API_KEY: str = env.str("IMAGES_API_KEY", default="")
IMAGES_MODEL: str = env.str("IMAGES_MODEL", default="")
IMAGES_TIMEOUT_S: float = env.float("IMAGES_TIMEOUT_S", default=300.0)
DEFAULT_VOICE: str = env.str("DEFAULT_VOICE", default="en-us")

EMBEDDING_THREADS: int = env.int("EMBEDDING_THREADS", default=min(4, os.cpu_count() or 1))
"""Threads of low priority that share the texts of a call, in embedding and reranking; a fifth has nothing to do."""
EMBEDDING_BASE_URL: str = env.str("EMBEDDING_BASE_URL", default="")
"""Base address of a server with `/embeddings`, such as http://127.0.0.1:8080/v1; empty uses the embedded model."""
EMBEDDING_API_KEY: str = env.str("EMBEDDING_API_KEY", default="")
EMBEDDING_MODEL: str = env.str("EMBEDDING_MODEL", default="")
EMBEDDING_TIMEOUT_S: float = env.float("EMBEDDING_TIMEOUT_S", default=60.0)
RERANK_BASE_URL: str = env.str("RERANK_BASE_URL", default="")
"""Base address of a server with `/rerank`, such as http://127.0.0.1:8080/v1; empty uses the embedded engine."""
RERANK_API_KEY: str = env.str("RERANK_API_KEY", default="")
RERANK_MODEL: str = env.str("RERANK_MODEL", default="")
RERANK_TIMEOUT_S: float = env.float("RERANK_TIMEOUT_S", default=60.0)
RERANK_SHAPE: str = env.str("RERANK_SHAPE", default="documents")
"""What that server calls the documents: `texts` for Text Embeddings Inference, `documents` for all others."""

_upstream = Upstream(
    UPSTREAM_BASE_URL,
    UPSTREAM_API_KEY,
    UPSTREAM_REALTIME_MODEL,
    image_models=UPSTREAM_IMAGE_MODELS,
    video_models=UPSTREAM_VIDEO_MODELS,
)
VOICE_MODELS: list[dict[str, Any]] = [
    *chat_cards(
        Server(CHAT_BASE_URL, CHAT_API_KEY, CHAT_MODEL, CHAT_TIMEOUT_S),
        sees_images=CHAT_SEES_IMAGES,
        folder=CHAT_MODEL_DIR,
    ),
    *voice_cards(_upstream),
    *retrieval_cards(
        Server(EMBEDDING_BASE_URL, EMBEDDING_API_KEY, EMBEDDING_MODEL, EMBEDDING_TIMEOUT_S),
        Server(RERANK_BASE_URL, RERANK_API_KEY, RERANK_MODEL, RERANK_TIMEOUT_S),
        rerank_shape=RERANK_SHAPE,
    ),
    *upstream_cards(_upstream),
    *image_cards(Server(IMAGES_BASE_URL, IMAGES_API_KEY, IMAGES_MODEL, IMAGES_TIMEOUT_S), _upstream),
]
"""Model names and aliases, their kind, and the class that provides them (see `voiceapp.engines.catalogue`)."""

# ── Log ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

LOG_LEVEL: str = env.str("LOG_LEVEL", default="INFO").upper()
if LOG_LEVEL not in logging.getLevelNamesMapping():
    raise ImproperlyConfigured(f"LOG_LEVEL is {LOG_LEVEL!r}: write DEBUG, INFO, WARNING or ERROR.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "filters": {"secrets": {"()": "voiceapp.server.logs.MaskSecrets"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["secrets"]}},
    "loggers": {
        # Without Django's own handlers: in development they would write every line twice, the second time unmasked.
        "django": {"handlers": []},
        # Every request has its line from voiceapp.access; Django would write a second one for each that is refused.
        "django.request": {"level": "ERROR"},
        # Tells of every pair of addresses that it tries, at each call.
        "aioice": {"level": {"INFO": "WARNING"}.get(LOG_LEVEL, LOG_LEVEL)},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
