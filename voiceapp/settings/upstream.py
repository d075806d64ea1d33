"""Services with this server's interface: another instance of it, or a hosted one."""

from __future__ import annotations

import re

from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.servers import DIALECTS, UpstreamSettings
from voiceapp.settings.environment import env

# ── Services with this server's interface ─────────────────────────────────────────────────────────────────────────────


def _service(prefix: str, alias: str) -> UpstreamSettings:
    """The service whose variables begin with `prefix`.

    Raises:
        ImproperlyConfigured: if a variable cannot be read, or two contradict one another.
    """

    def own(setting: str) -> str:
        return f"{prefix}_{setting}"

    def shared(setting: str) -> str:
        """Variable of this service, or else of the unnamed one."""
        return own(setting) if own(setting) in env.ENVIRON else f"UPSTREAM_{setting}"

    service = UpstreamSettings(
        # Root of another instance of this server, or of a hosted service, such as https://voice.example.org: what
        # comes before /api/v1. Its models are called as those of this server, and its key stays here.
        env.str(own("BASE_URL"), default="").strip(),
        # The key for that service.
        env.str(own("API_KEY"), default="").strip(),
        # That service's name for its realtime model. Callers find it here under this name and as "upstream".
        env.str(own("REALTIME_MODEL"), default="").strip(),
        # The longest wait for bytes of its HTTP responses, in seconds.
        env.float(shared("TIMEOUT_S"), default=60.0),
        alias=alias,
        settings=prefix,
        # Root of its realtime gateway, where that has an address of its own, as with a Token Plan.
        realtime_url=env.str(own("REALTIME_URL"), default="").strip(),
        # Root of its WebSockets, such as wss://voice.example.org, where that is another one again.
        ws_url=env.str(own("WS_URL"), default="").strip(),
        # Way of sound to its realtime model: bridged, through this server over any transport; direct, between caller
        # and service over WebRTC and AOQ. With UPSTREAM_DIALECT=openai, direct is for calls over /v1/realtime/calls.
        is_direct=(media := env.str(shared("MEDIA"), default="bridged")) == "direct",
        # Longest session of its, in seconds; at the first silence after that, a conversation moves to a new
        # session. 0 if unknown.
        session_limit_s=env.float(shared("SESSION_LIMIT_S"), default=0.0),
        # The service's chat models with commas between, each as NAME, or as OURS:THEIRS to give it another name
        # here.
        chat_models=env.list(own("CHAT_MODELS"), default=[]),
        # Its embedding models, likewise. The embedded model of the same name is then called embedded-NAME.
        embedding_models=env.list(own("EMBEDDING_MODELS"), default=[]),
        # Its rerank models, likewise.
        rerank_models=env.list(own("RERANK_MODELS"), default=[]),
        # Its models that draw, likewise; they work as tasks.
        image_models=env.list(own("IMAGE_MODELS"), default=[]),
        # Its models that make films, likewise.
        video_models=env.list(own("VIDEO_MODELS"), default=[]),
        # The word in the names of its headers: X-DashScope-Async.
        vendor=env.str(shared("VENDOR"), default="DashScope"),
        # Id of the workspace there, sent in the header X-DashScope-WorkSpace.
        workspace=env.str(own("WORKSPACE"), default="").strip(),
        # Its chat models take images.
        sees_images=env.bool(own("CHAT_SEES_IMAGES"), default=False),
        # Dialect of its realtime sessions: native, this server's interface; openai, that of OpenAI's family, a
        # hosted service or a speech server of your own. For the latter, UPSTREAM_BASE_URL is what comes before
        # /realtime, such as https://api.openai.com/v1, and only UPSTREAM_REALTIME_MODEL is served.
        dialect=env.str(own("DIALECT"), default="native"),
        # Model that transcribes the caller's words in a session of OpenAI's family. Empty asks for the model that a
        # caller names.
        transcription_model=env.str(shared("TRANSCRIPTION_MODEL"), default="whisper-1"),
    )
    if media not in ("bridged", "direct"):
        raise ImproperlyConfigured(f"{own('MEDIA')} is bridged or direct, not {media!r}.")
    return checked(service)


def checked(service: UpstreamSettings) -> UpstreamSettings:
    """The service, if its settings go together.

    Raises:
        ImproperlyConfigured: if they do not.
    """
    chosen = f"{service.settings}_DIALECT"
    if service.dialect not in DIALECTS:
        raise ImproperlyConfigured(f"{chosen} is {' or '.join(DIALECTS)}, not {service.dialect!r}.")
    if service.is_openais and service.has_others:
        raise ImproperlyConfigured(f"With {chosen}={service.dialect}, a service has a realtime model only.")
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
    service = _service(f"UPSTREAM_{alias.upper()}", alias)
    if not service:
        raise ImproperlyConfigured(f"UPSTREAM_SERVICES names {alias}: set {service.settings}_BASE_URL too.")
    return service


UPSTREAM_SERVICES: list[str] = env.list("UPSTREAM_SERVICES", default=[])
"""Names of further services, such as acme,other. Each has the settings of UPSTREAM under its own name:
UPSTREAM_ACME_BASE_URL, UPSTREAM_ACME_API_KEY, UPSTREAM_ACME_CHAT_MODELS and so on."""

UPSTREAMS: tuple[UpstreamSettings, ...] = (_service("UPSTREAM", "upstream"), *map(_further, UPSTREAM_SERVICES))
"""The services, the unnamed one first; without an address it offers nothing."""
