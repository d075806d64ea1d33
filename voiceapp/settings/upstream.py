"""Services with this server's interface: another instance of it, or a hosted one."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.servers import DIALECTS, UpstreamSettings
from voiceapp.settings.environment import env

# ── Services with the same interface ─────────────────────────────────────────────────────────────────────────────────

UPSTREAM_BASE_URL: str = env.str("UPSTREAM_BASE_URL", default="")
"""Root of a service elsewhere that answers `/api/v1`, such as https://voice.example.org; empty uses none."""
UPSTREAM_API_KEY: str = env.str("UPSTREAM_API_KEY", default="")
UPSTREAM_REALTIME_URL: str = env.str("UPSTREAM_REALTIME_URL", default="")
"""Root of its realtime gateway, where that is another one."""
UPSTREAM_WS_URL: str = env.str("UPSTREAM_WS_URL", default="")
"""Root of its WebSockets, such as wss://voice.example.org, where that is another one again."""
UPSTREAM_MEDIA: str = env.str("UPSTREAM_MEDIA", default="bridged")
"""How sound reaches its realtime model: `bridged`, through this server, whatever the caller's transport is; `direct`,
between caller and service over WebRTC and AOQ, whose offers and requests for grants are passed on. With a service of
OpenAI's family, those are the offers of callers who speak its dialect."""
UPSTREAM_VOICE: str = env.str("UPSTREAM_VOICE", default="theirs")
"""Who speaks the replies of its realtime model: `theirs`, the service; `ours`, this server, and the service writes.
Each service has its own: one of UPSTREAM_SERVICES speaks itself unless its setting says otherwise."""
UPSTREAM_SESSION_LIMIT_S: float = env.float("UPSTREAM_SESSION_LIMIT_S", default=0.0)
"""How long a realtime session of its lasts. At the first silence after that, a conversation goes on in a new one; 0
waits until the service ends it."""
UPSTREAM_WARM: int = env.int("UPSTREAM_WARM", default=0)
"""How many connections for realtime sessions are dialled ahead of time; each takes a place for sessions there."""
MOST_WARM = 64
UPSTREAM_REALTIME_MODEL: str = env.str("UPSTREAM_REALTIME_MODEL", default="")
"""The service's name for its model. Callers find it here under this name and as `upstream`."""
UPSTREAM_WEBHOOK_URL: str = env.str("UPSTREAM_WEBHOOK_URL", default="")
"""Root of its interface for webhook endpoints, such as https://voice.example.org; with it, those that are not known
here can be looked at and deleted there, by one account."""
UPSTREAM_WEBHOOK_ACCOUNT: str = env.str("UPSTREAM_WEBHOOK_ACCOUNT", default="")
"""The name of that account here: all of its keys that may be used for webhooks reach every endpoint there."""
UPSTREAM_CHAT_MODELS: list[str] = env.list("UPSTREAM_CHAT_MODELS", default=[])
"""The service's chat models, each as NAME, or as OURS:THEIRS when callers know it by another name here."""
UPSTREAM_CHAT_SEES_IMAGES: bool = env.bool("UPSTREAM_CHAT_SEES_IMAGES", default=False)
"""Whether they take images."""
UPSTREAM_EMBEDDING_MODELS: list[str] = env.list("UPSTREAM_EMBEDDING_MODELS", default=[])
"""Its embedding models, likewise."""
UPSTREAM_RERANK_MODELS: list[str] = env.list("UPSTREAM_RERANK_MODELS", default=[])
"""Its rerank models, likewise."""
UPSTREAM_IMAGE_MODELS: list[str] = env.list("UPSTREAM_IMAGE_MODELS", default=[])
"""Its models that draw, likewise; they work as tasks."""
UPSTREAM_VIDEO_MODELS: list[str] = env.list("UPSTREAM_VIDEO_MODELS", default=[])
"""Its models that make films, likewise."""
UPSTREAM_TIMEOUT_S: float = env.float("UPSTREAM_TIMEOUT_S", default=60.0)
"""The longest wait for bytes of its HTTP responses."""
UPSTREAM_VENDOR: str = env.str("UPSTREAM_VENDOR", default="DashScope")
"""The word in the names of its headers, such as X-DashScope-Async."""
UPSTREAM_WORKSPACE: str = env.str("UPSTREAM_WORKSPACE", default="")
"""Id of the workspace there, sent in the header X-DashScope-WorkSpace."""
UPSTREAM_DIALECT: str = env.str("UPSTREAM_DIALECT", default="native")
"""In which words its realtime sessions are held: `native`, this server's; `openai`, those of OpenAI's family;
`openai-beta`, the older ones of that family. For the latter two UPSTREAM_BASE_URL is what comes before `/realtime`."""
UPSTREAM_TRANSCRIPTION_MODEL: str = env.str("UPSTREAM_TRANSCRIPTION_MODEL", default="whisper-1")
"""What transcribes the caller's words in a session of OpenAI's family; empty asks for what the caller names."""
UPSTREAM_SERVICES: list[str] = env.list("UPSTREAM_SERVICES", default=[])
"""Names of further services: each has settings of its own, such as UPSTREAM_ACME_BASE_URL for one called acme."""


def _is_direct(setting: str, value: str) -> bool:
    """Whether media flow past this server.

    Raises:
        ImproperlyConfigured: if the value says neither.
    """
    if value not in ("bridged", "direct"):
        raise ImproperlyConfigured(f"{setting} is bridged or direct, not {value!r}.")
    return value == "direct"


def _speaks_here(setting: str, value: str) -> bool:
    """Whether this server speaks.

    Raises:
        ImproperlyConfigured: if the value says neither.
    """
    if value not in ("theirs", "ours"):
        raise ImproperlyConfigured(f"{setting} is theirs or ours, not {value!r}.")
    return value == "ours"


def checked(service: UpstreamSettings) -> UpstreamSettings:
    """The service, if its settings go together.

    Raises:
        ImproperlyConfigured: if they do not.
    """
    chosen = f"{service.settings}_DIALECT"
    if service.dialect not in DIALECTS:
        raise ImproperlyConfigured(
            f"{chosen} is {', '.join(DIALECTS[:-1])} or {DIALECTS[-1]}, not {service.dialect!r}."
        )
    if service.dialect == "openai-beta" and service.is_direct:
        raise ImproperlyConfigured(f"{chosen}={service.dialect} needs {service.settings}_MEDIA=bridged.")
    if service.speaks_here and service.is_direct:
        raise ImproperlyConfigured(f"{service.settings}_VOICE=ours needs {service.settings}_MEDIA=bridged.")
    if service.is_openais and service.has_others:
        raise ImproperlyConfigured(f"With {chosen}={service.dialect}, a service has a realtime model only.")
    if service.is_openais and service.warm:
        raise ImproperlyConfigured(f"{chosen}={service.dialect} needs {service.settings}_WARM=0.")
    if not 0 <= service.warm <= MOST_WARM:
        raise ImproperlyConfigured(f"{service.settings}_WARM is a number from 0 to {MOST_WARM}, not {service.warm}.")
    return service


def _further(alias: str) -> UpstreamSettings:
    """A service with a name, out of variables with that name in theirs.

    Raises:
        ImproperlyConfigured: if the name is none, or the service has no address.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", alias) or alias in ("upstream", "embedded", "server"):
        raise ImproperlyConfigured(
            f"UPSTREAM_SERVICES holds names of lower-case letters, digits and underscores, not {alias!r}."
        )
    prefix = f"UPSTREAM_{alias.upper()}"

    def text(name: str, default: str = "") -> str:
        return str(env.ENVIRON.get(f"{prefix}_{name}", default)).strip()

    def models(kind: str) -> list[str]:
        return [name for name in text(f"{kind}_MODELS").split(",") if name.strip()]

    if not text("BASE_URL"):
        raise ImproperlyConfigured(f"UPSTREAM_SERVICES names {alias}: set {prefix}_BASE_URL too.")

    def seconds(name: str, default: float) -> float:
        try:
            return float(text(name, str(default)))
        except ValueError:
            raise ImproperlyConfigured(f"{prefix}_{name} is a number of seconds.") from None

    def count(name: str) -> int:
        given = text(name, "0")
        if not (given.isascii() and given.isdigit()):
            raise ImproperlyConfigured(f"{prefix}_{name} is a number, not {given!r}.")
        return int(given)

    return checked(
        UpstreamSettings(
            text("BASE_URL"),
            text("API_KEY"),
            text("REALTIME_MODEL"),
            seconds("TIMEOUT_S", UPSTREAM_TIMEOUT_S),
            alias=alias,
            settings=prefix,
            realtime_url=text("REALTIME_URL"),
            ws_url=text("WS_URL"),
            is_direct=_is_direct(f"{prefix}_MEDIA", text("MEDIA", UPSTREAM_MEDIA)),
            speaks_here=_speaks_here(f"{prefix}_VOICE", text("VOICE", "theirs")),
            session_limit_s=seconds("SESSION_LIMIT_S", UPSTREAM_SESSION_LIMIT_S),
            warm=count("WARM"),
            chat_models=models("CHAT"),
            embedding_models=models("EMBEDDING"),
            rerank_models=models("RERANK"),
            image_models=models("IMAGE"),
            video_models=models("VIDEO"),
            vendor=text("VENDOR", UPSTREAM_VENDOR),
            workspace=text("WORKSPACE"),
            sees_images=text("CHAT_SEES_IMAGES", "0").lower() in env.BOOLEAN_TRUE_STRINGS,
            dialect=text("DIALECT", "native"),
            transcription_model=text("TRANSCRIPTION_MODEL", UPSTREAM_TRANSCRIPTION_MODEL),
        )
    )


UPSTREAMS: tuple[UpstreamSettings, ...] = (
    checked(
        UpstreamSettings(
            UPSTREAM_BASE_URL,
            UPSTREAM_API_KEY,
            UPSTREAM_REALTIME_MODEL,
            UPSTREAM_TIMEOUT_S,
            realtime_url=UPSTREAM_REALTIME_URL,
            ws_url=UPSTREAM_WS_URL,
            is_direct=_is_direct("UPSTREAM_MEDIA", UPSTREAM_MEDIA),
            speaks_here=_speaks_here("UPSTREAM_VOICE", UPSTREAM_VOICE),
            session_limit_s=UPSTREAM_SESSION_LIMIT_S,
            warm=UPSTREAM_WARM,
            chat_models=UPSTREAM_CHAT_MODELS,
            embedding_models=UPSTREAM_EMBEDDING_MODELS,
            rerank_models=UPSTREAM_RERANK_MODELS,
            image_models=UPSTREAM_IMAGE_MODELS,
            video_models=UPSTREAM_VIDEO_MODELS,
            vendor=UPSTREAM_VENDOR,
            workspace=UPSTREAM_WORKSPACE,
            sees_images=UPSTREAM_CHAT_SEES_IMAGES,
            dialect=UPSTREAM_DIALECT,
            transcription_model=UPSTREAM_TRANSCRIPTION_MODEL,
        )
    ),
    *map(_further, UPSTREAM_SERVICES),
)
"""The services, the unnamed one first; without an address it offers nothing."""

UPSTREAM_WEBHOOK_ADDRESS: dict[str, Any] = (
    UPSTREAMS[0].address | {"base_url": UPSTREAM_WEBHOOK_URL} if UPSTREAM_WEBHOOK_URL else {}
)
"""What has to be known to ask for webhook endpoints there; empty: they are not asked for."""
if bool(UPSTREAM_WEBHOOK_URL) != bool(UPSTREAM_WEBHOOK_ACCOUNT):
    raise ImproperlyConfigured("UPSTREAM_WEBHOOK_URL and UPSTREAM_WEBHOOK_ACCOUNT need each other.")
