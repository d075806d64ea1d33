"""This installation: where it lies, its Django applications, its database, files, pages and log."""

from __future__ import annotations

import logging
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from voiceapp.settings.environment import (
    BASE_DIR,
    database,
    development_key,
    env,
    hosts,
    made_folder,
    network,
    stripped,
)

# ── This installation ────────────────────────────────────────────────────────────────────────────────────────────────

VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var")))
"""Folder that the program writes to: database, models, uploads."""

DEVELOPMENT_MARK = VAR_DIR / "development"
"""Left by the first `make run` in development, so that `manage.py` commands need no variables there afterwards. It
counts only while there is no SECRET_KEY, and without one nothing else starts: a deployment never looks at it."""

DEBUG: bool = env.bool("DEBUG", default=not env.str("SECRET_KEY", default="") and DEVELOPMENT_MARK.is_file())
"""Development on your own machine: guests may talk, a local account is made on first start, plain http. 1 or 0."""

SECRET_KEY: str = env.str("SECRET_KEY", default="") or (development_key(VAR_DIR) if DEBUG else "")
"""A long random string, which the commands of a build do not need. With DEBUG=1, one is made in VAR_DIR."""
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
"""Earlier values of SECRET_KEY, with commas between: what was signed or encrypted with them stays good while they stand
here."""

ALLOWED_HOSTS: list[str] = hosts(env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"]))
"""Host names by which people reach this server, with commas between."""
CSRF_TRUSTED_ORIGINS: list[str] = stripped(env.list("CSRF_TRUSTED_ORIGINS", default=[]))
"""Origins besides the server's own from which the page may open its socket, such as https://voice.example.org."""

CORS_ALLOWED_ORIGINS: list[str] = stripped(env.list("CORS_ALLOWED_ORIGINS", default=[]))
"""Origins whose pages may call the API from a browser, with commas between; any without it, since only keys count
there."""
CORS_ALLOW_ALL_ORIGINS = not CORS_ALLOWED_ORIGINS
CORS_URLS_REGEX = r"/+(v[12]|rerank|api|api-ws|compatible-mode|compatible-api)(/|$)"
"""Addresses of the API. Whatever reads a cookie has another one."""
CORS_ALLOW_HEADERS = ("*", "authorization")
CORS_EXPOSE_HEADERS = ("*",)

VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]

# ── Applications and the request line ────────────────────────────────────────────────────────────────────────────────

INSTALLED_APPS = [
    "voiceapp.server",
    "voiceapp.accounts",
    "voiceapp.agents",
    "voiceapp.realtime",
    "voiceapp.tasks",
    "voiceapp.webhooks",
    "voiceapp.pages",
    "unfold.apps.BasicAppConfig",  # before the admin, whose templates it replaces
    "voiceapp.operators.apps.OperatorsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "corsheaders",
    "csp",
]

MIDDLEWARE = [
    "corsheaders.middleware.CorsMiddleware",  # first: preflights carry no key
    "voiceapp.http.middleware.EnvelopeMiddleware",  # it takes API requests past everything that only pages need
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "voiceapp.pages.languages.PageLanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "voiceapp.urls"
ASGI_APPLICATION = "voiceapp.asgi.application"
APPEND_SLASH = False  # `voiceapp.urls` redirects pages

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

# ── Database and Redis ────────────────────────────────────────────────────────────────────────────────────────────────

DATABASE_POOL_SIZE: int = env.int("DATABASE_POOL_SIZE", default=8)
"""Connections to PostgreSQL that one process has at most, beside the one that tells it of new work."""
DATABASES = {"default": database(env.str("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'voiceapp.sqlite3'}"))}
"""Database of accounts, keys and conversations; postgres://user:password@host/name works too."""
_options = DATABASES["default"].setdefault("OPTIONS", {})
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    made_folder(VAR_DIR)  # SQLite makes the file, not the folder
    DATABASES["default"]["ENGINE"] = "voiceapp.database.sqlite3"
    _options.update(
        {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        }
    )
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    DATABASES["default"]["ENGINE"] = "voiceapp.database.postgresql"
    # A server that went away without a word is noticed after about half a minute; the last is in milliseconds.
    _noticed = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
    # Async views run in many short threads; without a pool each would open a connection of its own.
    # It gives up connecting soon, and tries again for the next caller: left to itself, it doubles its pauses.
    _pool = {"min_size": 1, "max_size": DATABASE_POOL_SIZE, "timeout": 5, "reconnect_timeout": 5}
    DATABASES["default"]["OPTIONS"] = {"connect_timeout": 5, **_noticed, "pool": _pool, **_options}
DATABASE_WAIT_S: float = env.float("DATABASE_WAIT_S", default=3.5)
"""Seconds that a request waits for the database, in all, before it is refused with 503. Background work, such as tasks,
and writes after a response has begun wait longer."""
DISK_RESERVE_BYTES: int = env.int("DISK_RESERVE_BYTES", default=512 * 1024**2)
"""Bytes of free disk space below which nothing new is begun, no task, upload or conversation; what runs goes on. 0
looks at nothing."""
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL: str = env.str("REDIS_URL", default="")
"""A Redis in which several server processes count rate limits, guests' beginnings and failed attempts to sign in
together, such as redis://127.0.0.1:6379/0; install requirements-redis.txt with it. Without one, each process counts for
itself."""

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},  # login attempts are counted here; at 300, guessing would push counts out
    }
}
if REDIS_URL:
    CACHES["shared"] = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "voiceapp",
        "OPTIONS": {"socket_timeout": 0.5, "socket_connect_timeout": 0.5},
    }

# ── Files of tasks ───────────────────────────────────────────────────────────────────────────────────────────────────

TASK_STORAGE: str = env.str("TASK_STORAGE", default="")
"""Storage of the files of tasks: a folder in VAR_DIR without it, or a bucket, such as s3://bucket/folder
(requirements-s3.txt). Processes on several machines need a bucket, or a folder that they share. Keys and the region are
taken from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_DEFAULT_REGION, or from the machine's role."""
AWS_ENDPOINT_URL: str = env.str("AWS_ENDPOINT_URL", default="")
"""Address of an S3 server that is not Amazon's, such as https://minio.example.org."""
_task_storage: dict[str, Any] = {
    "BACKEND": "voiceapp.tasks.storage.folders.TaskFolder",
    "OPTIONS": {"location": VAR_DIR / "tasks"},
}
if TASK_STORAGE:
    _bucket = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", TASK_STORAGE)
    if _bucket is None:
        raise ImproperlyConfigured("TASK_STORAGE must be s3://bucket or s3://bucket/folder.")
    _task_storage = {
        "BACKEND": "voiceapp.tasks.storage.buckets.Bucket",
        "OPTIONS": {
            "bucket_name": _bucket[1],
            "location": (_bucket[2] or "").strip("/"),
            "endpoint_url": AWS_ENDPOINT_URL or None,
        },
    }

# ── Static files ─────────────────────────────────────────────────────────────────────────────────────────────────────

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
"""The folder into which collectstatic puts what browsers fetch; staticfiles/ beside manage.py without it."""
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
LANGUAGES = [
    ("en", "English"),
    ("de", "Deutsch"),
    ("es", "Español"),
    ("fr", "Français"),
    ("ja", "日本語"),
    ("zh-hans", "简体中文"),
]
"""Languages of the pages that visitors see."""
LANGUAGE_COOKIE_NAME = "language"
FORMAT_MODULE_PATH = "voiceapp.operators.date_formats"
TIME_ZONE = "UTC"
USE_TZ = True
LOCAL_TIME_ZONE: str = env.str("LOCAL_TIME_ZONE", default="UTC")
"""IANA name of the zone in which the assistant tells the time when it does not know the caller's, such as
Europe/Vienna."""

# ── Security ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TRUST_PROXY: bool = env.bool("TRUST_PROXY", default=False)
"""A proxy of yours stands in front and sets X-Forwarded-Proto and X-Forwarded-For."""
TRUSTED_PROXY_COUNT: int = env.int("TRUSTED_PROXY_COUNT", default=1)
"""Number of proxies of yours that a request passes; so many entries of X-Forwarded-For and X-Forwarded-Proto, from the
right, are believed."""

HTTPS: bool = env.bool("HTTPS", default=not DEBUG)
"""People reach this server by https: secure cookies, HSTS, redirect from http. On unless DEBUG=1."""
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS: int = env.int("SECURE_HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
"""Seconds for which browsers remember to use https; 0 says nothing to them. 0 without HTTPS."""
SECURE_HSTS_INCLUDE_SUBDOMAINS: bool = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
"""Browsers then use https for every host below this one, too: only where all of them have it."""
SECURE_HSTS_PRELOAD: bool = env.bool("SECURE_HSTS_PRELOAD", default=False)
"""Allow the domain on the list that browsers are shipped with; needs SECURE_HSTS_INCLUDE_SUBDOMAINS, and months to
undo."""
# Both bind other hosts of the same owner, for a year and longer: an operator may choose them, a check must not insist.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if not HTTPS:  # chosen, as behind another server in a private network: HSTS, redirect and both cookies follow from it
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]
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

PROXY_USER_HEADER: str = env.str("PROXY_USER_HEADER", default="")
"""Header in which a proxy names the person who has signed in there, such as Remote-User. The proxy must set it in every
request that it passes on, and take away what a client sent. Empty believes none."""
PROXY_USER_NETWORKS: list[str] = env.list("PROXY_USER_NETWORKS", cast=network, default=["127.0.0.1/32", "::1/128"])
"""Networks of the proxies that are believed in this, with commas between; this machine without it."""
OIDC_ISSUER: str = env.str("OIDC_ISSUER", default="").rstrip("/")
"""Address of an OpenID Connect provider with which people may sign in (requirements-oidc.txt). It sends them back
to /login/openid/callback. The user name of their login is their e-mail address; a login that is missing is made without
rights."""
SIGNS_IN_WITH_OPENID = bool(OIDC_ISSUER and find_spec("mozilla_django_oidc"))
OIDC_RP_CLIENT_ID: str = env.str("OIDC_CLIENT_ID", default="")
"""This server's name at that provider."""
OIDC_RP_CLIENT_SECRET: str = env.str("OIDC_CLIENT_SECRET", default="")
"""Its secret there."""
OIDC_RP_SIGN_ALGO: str = env.str("OIDC_ALGORITHM", default="RS256")
"""Algorithm that the provider signs with."""
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 10

AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
if PROXY_USER_HEADER:
    MIDDLEWARE.insert(
        1 + MIDDLEWARE.index("django.contrib.auth.middleware.AuthenticationMiddleware"),
        "voiceapp.accounts.proxy_sign_in.ProxySignIn",
    )
    AUTHENTICATION_BACKENDS.append("django.contrib.auth.backends.RemoteUserBackend")
if SIGNS_IN_WITH_OPENID:
    AUTHENTICATION_BACKENDS.append("voiceapp.accounts.openid.OpenIdBackend")

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "voice"
ADMIN_PATH: str = env.str("ADMIN_PATH", default="admin/")
"""Path of the operators' site, with a slash at its end."""
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

# ── Log ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

LOG_LEVEL: str = env.str("LOG_LEVEL", default="INFO").upper()
"""DEBUG, INFO, WARNING or ERROR."""
if LOG_LEVEL not in logging.getLevelNamesMapping():
    raise ImproperlyConfigured(f"LOG_LEVEL is {LOG_LEVEL!r}: write DEBUG, INFO, WARNING or ERROR.")
LOG_FORMAT: str = env.str("LOG_FORMAT", default="text").lower()
"""Shape of each line of the log: `text`, or `json` for programs that collect logs."""
if LOG_FORMAT not in ("text", "json"):
    raise ImproperlyConfigured(f"LOG_FORMAT is {LOG_FORMAT!r}: write text or json.")
SENTRY_DSN: str = env.str("SENTRY_DSN", default="")
"""Address of a Sentry project to which errors are reported (requirements-sentry.txt). Empty reports none."""
_endpoint: str = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")
"""Address of an OpenTelemetry collector to which traces are sent by http/protobuf, such as http://127.0.0.1:4318
(requirements-otel.txt). The library reads its other variables by itself."""
_endpoint = _endpoint or env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default="")
"""The same for traces alone, with its path."""
TRACING_PROTOCOL: str = env.str("OTEL_EXPORTER_OTLP_PROTOCOL", default="http/protobuf")
"""The only protocol of traces that is spoken here."""
_is_off: bool = env.bool("OTEL_SDK_DISABLED", default=False)
"""Send no traces, whatever else is set."""
_is_off = env.str("OTEL_TRACES_EXPORTER", default="otlp") != "otlp" or _is_off
"""otlp, or none to send no traces."""
TRACED_CONTENT: bool = env.bool("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", default=False)
"""Traces hold what is said to language models and what they reply."""
TRACING: bool = bool(_endpoint) and not _is_off

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
        "json": {"()": "voiceapp.server.logs.JsonLines"},
    },
    "filters": {
        "django": {"()": "voiceapp.server.logs.DjangoRecords"},
        "secrets": {"()": "voiceapp.server.logs.MaskSecrets"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["django", "secrets"]}
    },
    "loggers": {
        # Without Django's own handlers: in development they would write every line twice, the second time unmasked.
        "django": {"handlers": []},
        # Every request has its line from voiceapp.access; Django would write a second one for each that is refused.
        "django.request": {"level": "ERROR"},
        # Repeats several times a second that the database is away, which is logged where it is noticed.
        "psycopg.pool": {"level": "ERROR"},
        # Tells of every pair of addresses that it tries, at each call.
        "aioice": {"level": {"INFO": "WARNING"}.get(LOG_LEVEL, LOG_LEVEL)},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
if SENTRY_DSN and find_spec("sentry_sdk"):
    LOGGING["handlers"]["sentry"] = {"()": "voiceapp.server.logs.sentry", "level": "ERROR", "filters": ["django"]}
    LOGGING["root"]["handlers"].append("sentry")
