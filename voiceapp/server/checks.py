"""Contradictory or dangerous settings, found before anything starts: each has an id and says what to do.

What concerns people, conversations and quotas is looked at in `voiceapp.accounts.checks`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import stat
import zoneinfo
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.core.checks import CheckMessage, Error, Info, Warning
from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.defaults import whisper_folder
from voiceapp.disk import Unwritable, disks

EPHEMERAL_HOSTS = {
    "DYNO": "Heroku",
    "RENDER": "Render",
    "RAILWAY_ENVIRONMENT": "Railway",
    "K_SERVICE": "Cloud Run",
    "CONTAINER_VERSION": "Scalingo",
}
"""Variables that hosts set whose disks are lost at each restart, or whose proxy ends TLS."""

LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
HTTP, WEBSOCKET = ("http", "https"), ("ws", "wss")
SERVERS = {
    **dict.fromkeys(("CHAT", "INSPECTION", "IMAGES", "EMBEDDING", "RERANK"), HTTP),
    **dict.fromkeys(("ASR", "TTS"), (*HTTP, "tcp")),
}
"""Models that another server may serve, and the schemes of its address."""

CREDENTIALS = re.compile(r"//[^/]*@")
"""User and password in an address."""

TASK_ENGINES = ("embedded", "worker", "celery")

LONGEST_DRAIN_S = 20.0
"""Hosts kill 30 s after SIGTERM; closing sockets and engines needs the rest."""


def check_settings(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **kwargs: object
) -> list[CheckMessage]:
    looks = (_secret_key, _hosting, _https, _addresses, _values, _files, _limits, _static_files, _removed)
    return [finding for look in looks for finding in look()]


def _removed() -> Iterator[CheckMessage]:
    for sentence in settings.REMOVED_SETTINGS:
        yield Info(sentence, hint="The manual lists the settings of this version.", id="server.I026")


def _hosting() -> Iterator[CheckMessage]:
    host = next((name for variable, name in EPHEMERAL_HOSTS.items() if os.environ.get(variable)), None)
    if host is None:
        return
    is_sqlite = settings.DATABASES["default"]["ENGINE"] == "voiceapp.database.sqlite3"
    if is_sqlite and not settings.ALLOW_EPHEMERAL_DB:
        yield Error(
            f"The database is SQLite on {host}, whose disk is lost at each restart: keys and conversations with it.",
            hint="Set DATABASE_URL to a PostgreSQL server, or ALLOW_EPHEMERAL_DB=1 where a lasting disk is mounted.",
            id="server.E001",
        )
    if settings.HTTPS and not settings.TRUST_PROXY:
        yield Warning(
            f"HTTPS is on behind the proxy of {host}, but TRUST_PROXY is off: every request redirects for ever.",
            hint="Set TRUST_PROXY=1.",
            id="server.W002",
        )


def _https() -> Iterator[CheckMessage]:
    if settings.SECURE_HSTS_PRELOAD and not settings.SECURE_HSTS_INCLUDE_SUBDOMAINS:
        yield Warning(
            "SECURE_HSTS_PRELOAD is on without SECURE_HSTS_INCLUDE_SUBDOMAINS; no browser lists such a domain.",
            hint="Set SECURE_HSTS_INCLUDE_SUBDOMAINS=1 where all hosts below this one have https, or take it off.",
            id="server.W020",
        )


def _addresses() -> Iterator[CheckMessage]:
    if not settings.DEBUG and ("*" in settings.ALLOWED_HOSTS or not set(settings.ALLOWED_HOSTS) - LOOPBACK):
        yield Info(
            f"ALLOWED_HOSTS is {','.join(settings.ALLOWED_HOSTS)}: "
            + ("any name is believed." if "*" in settings.ALLOWED_HOSTS else "only this machine reaches the server."),
            hint="Set it to the host names by which people reach the server.",
            id="server.I040",
        )
    given = [(name, "BASE", getattr(settings, f"{name}_BASE_URL"), schemes) for name, schemes in SERVERS.items()]
    keys = {name: getattr(settings, f"{name}_API_KEY") for name in SERVERS}
    for service in settings.UPSTREAMS:
        keys[service.settings] = service.api_key
        given += [
            (service.settings, "BASE", service.base_url, HTTP),
            (service.settings, "REALTIME", service.realtime_url, (*HTTP, *WEBSOCKET)),
            (service.settings, "WS", service.ws_url, (*HTTP, *WEBSOCKET)),
        ]
        if not service.base_url and (service.model or service.has_others):
            yield Warning(
                f"{service.settings} names models of a service that has no address: nothing serves them.",
                hint=f"Set {service.settings}_BASE_URL to the service's address.",
                id="server.W023",
            )
    for server, which, urls, schemes in given:
        name = f"{server}_{which}_URL"
        parts = [urlsplit(url.strip()) for url in urls.split(",")]
        protocols = {part.scheme == "tcp" for part in parts}
        if urls and not (all(part.scheme in schemes and part.netloc for part in parts) and len(protocols) == 1):
            yield Error(
                f"{name} is {CREDENTIALS.sub('//…@', urls)!r}, which is not the address of a server, or of several.",
                hint=f"Write it whole, such as {schemes[0]}://127.0.0.1:11434/v1, and several with commas between.",
                id="server.E005",
            )
        if keys[server] and CREDENTIALS.search(urls):
            yield Error(
                f"{name} holds a user and a password beside {server}_API_KEY: a request can carry one of them.",
                hint="Leave one of them out.",
                id="server.E041",
            )


def _secret_key() -> Iterator[CheckMessage]:
    try:
        assert settings.SECRET_KEY
    except ImproperlyConfigured:
        yield Error(
            "SECRET_KEY is not set.",
            hint="Set it to a long random string, or DEBUG=1 to try things out on your own machine.",
            id="server.E025",
        )


def _values() -> Iterator[CheckMessage]:
    if not 1 <= settings.PORT <= 65535:
        yield Error(f"PORT is {settings.PORT}.", hint="Use a number from 1 to 65535.", id="server.E004")
    if settings.CHAT_BASE_URL and not settings.CHAT_MODEL:
        yield Warning(
            "CHAT_BASE_URL is set without CHAT_MODEL; most servers refuse a request that names no model.",
            hint="Set CHAT_MODEL to a name that the server knows.",
            id="server.W006",
        )
    names_a_service = any(service.chat_models for service in settings.UPSTREAMS)  # one of which CHAT_MODEL may name
    if not settings.CHAT_BASE_URL and (settings.CHAT_API_KEY or (settings.CHAT_MODEL and not names_a_service)):
        yield Warning(
            "CHAT_MODEL or CHAT_API_KEY is set without CHAT_BASE_URL; the embedded assistant answers.",
            hint="Set CHAT_BASE_URL to the server's address.",
            id="server.W007",
        )
    if settings.TASK_ENGINE not in TASK_ENGINES:
        yield Error(
            f"TASK_ENGINE is {settings.TASK_ENGINE!r}.", hint=f"Use one of {', '.join(TASK_ENGINES)}.", id="server.E014"
        )
    if settings.TASK_ENGINE == "celery" and not settings.CELERY_BROKER_URL:
        yield Error(
            "TASK_ENGINE is celery, and no broker is named: accepted tasks would wait for ever.",
            hint="Set CELERY_BROKER_URL, such as redis://127.0.0.1:6379/1.",
            id="server.E015",
        )
    speech_servers = (settings.ASR_BASE_URL, settings.TTS_BASE_URL)
    reads_languages = settings.SPEECH_LANGUAGES and not settings.ASR_BASE_URL
    for is_wanted, package, extra, why, number in (
        (settings.TASK_ENGINE == "celery", "celery", "celery", "TASK_ENGINE is celery", 16),
        (settings.TASK_STORAGE, "storages", "s3", "TASK_STORAGE names a bucket", 17),
        (
            any(url.startswith("tcp://") for url in speech_servers),
            "wyoming",
            "wyoming",
            "tcp:// is a Wyoming server",
            18,
        ),
        (reads_languages, "ctranslate2", "whisper", "SPEECH_LANGUAGES is set", 29),
        (settings.MCP_SERVERS, "mcp", "mcp", "MCP_SERVERS lists servers", 36),
        (settings.TRACING, "opentelemetry.exporter.otlp.proto.http", "otel", "OTEL_EXPORTER_OTLP_ENDPOINT is set", 37),
        (settings.SENTRY_DSN, "sentry_sdk", "sentry", "SENTRY_DSN is set", 38),
        (settings.OIDC_ISSUER, "mozilla_django_oidc", "oidc", "OIDC_ISSUER is set", 41),
    ):
        if is_wanted and not _is_installed(package):
            yield Error(
                f"{why}, and the package that it needs is not installed.",
                hint=f"Run pip install -r requirements-{extra}.txt, or build with EXTRAS={extra}.",
                id=f"server.E{number:03}",
            )
    if settings.TRACING and settings.TRACING_PROTOCOL != "http/protobuf":
        yield Warning(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {settings.TRACING_PROTOCOL!r}; traces are sent by http/protobuf.",
            hint="Set it to http/protobuf, and the endpoint to the collector's port for that (4318).",
            id="server.W039",
        )
    whisper = whisper_folder(settings.ASR_MODEL, Path(settings.MODELS_DIR))
    if reads_languages and settings.ASR_MODEL and not (whisper / "model.bin").is_file():
        yield Warning(
            f"ASR_MODEL is {settings.ASR_MODEL!r}, and {whisper} holds no Whisper in CTranslate2's form.",
            hint="Set it to a folder with one, run manage.py fetch_models where it is an address, or leave it empty "
            "for the one that the command brings.",
            id="server.W030",
        )
    if settings.ADMIN_PATH.startswith("/") or not settings.ADMIN_PATH.endswith("/"):
        yield Error(
            f"ADMIN_PATH is {settings.ADMIN_PATH!r}.",
            hint="Write it without a leading and with a trailing slash, such as admin/.",
            id="server.E008",
        )
    if settings.LOCAL_TIME_ZONE not in zoneinfo.available_timezones():
        yield Error(
            f"LOCAL_TIME_ZONE is {settings.LOCAL_TIME_ZONE!r}, which is no time zone.",
            hint="Use an IANA name such as Europe/Berlin.",
            id="server.E009",
        )
    if settings.DOCUMENTS_DIR and not Path(settings.DOCUMENTS_DIR).is_dir():
        yield Error(
            f"DOCUMENTS_DIR is {settings.DOCUMENTS_DIR!r}, which is no folder.",
            hint="Set it to an existing folder of .md and .txt files, or leave it empty.",
            id="server.E010",
        )
    if settings.VOICES_DIR and not Path(settings.VOICES_DIR).is_dir():
        yield Error(
            f"VOICES_DIR is {str(settings.VOICES_DIR)!r}, which is no folder.",
            hint="Set it to an existing folder of voices, or leave it empty.",
            id="server.E024",
        )


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # a package that it is part of is missing
        return False


def _files() -> Iterator[CheckMessage]:
    if isinstance(found := disks().shortage(), Unwritable):
        # No warning: where a release step runs, the folder's disk may be missing. Readiness knows it of the server.
        yield Info(f"{found.folder} cannot be written.", hint=f"It is {found.place}. {found}", id="server.I027")
    env = Path(settings.BASE_DIR) / ".env"
    if not settings.DEBUG and env.exists() and env.stat().st_uid == os.geteuid() and env.stat().st_mode & stat.S_IRWXO:
        yield Warning(
            "Every user of this machine can read .env, which holds secrets.",
            hint="Run chmod 600 .env.",
            id="server.W028",
        )


def _limits() -> Iterator[CheckMessage]:
    for name in (
        "MAX_CONNECTIONS",
        "MAX_CONNECTIONS_PER_ADDRESS",
        "HEADER_TIMEOUT_S",
        "BODY_TIMEOUT_S",
        "SEND_TIMEOUT_S",
        "LINGER_S",
        "MAX_MESSAGE_BYTES",
        "PING_S",
        "MAX_BODY_BYTES",
        "MAX_UPLOAD_BYTES",
        "DATABASE_WAIT_S",
        "DATABASE_POOL_SIZE",
    ):
        if getattr(settings, name) <= 0:
            yield Error(f"{name} is {getattr(settings, name)}.", hint="Use a number above 0.", id="server.E011")
    is_hosted = any(variable in os.environ for variable in EPHEMERAL_HOSTS)
    if settings.DRAIN_S < 0 or (is_hosted and settings.DRAIN_S > LONGEST_DRAIN_S):
        yield Warning(
            f"DRAIN_S is {settings.DRAIN_S:g}; hosts kill a process that has not ended 30 s after they asked.",
            hint=f"Use 0 to {LONGEST_DRAIN_S:g} seconds.",
            id="server.W013",
        )


def _static_files() -> Iterator[CheckMessage]:
    if isinstance(staticfiles_storage, ManifestFilesMixin) and not staticfiles_storage.hashed_files:
        yield Warning(
            "Static files have not been collected: every page is answered 500, the API alone works.",
            hint="Run python manage.py collectstatic, as the same user and with the same STATIC_ROOT.",
            id="server.W018",
        )
