"""Services with this server's interface: another instance of it, or a hosted one."""

from __future__ import annotations

import re

from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.servers import DIALECTS, UpstreamSettings
from voiceapp.settings.environment import env

UPSTREAM_SERVICES: list[str] = env.list("UPSTREAM_SERVICES", default=[])
"""Names of further services: each has settings of its own, such as UPSTREAM_ACME_BASE_URL for one called acme."""


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

    media = env.str(shared("MEDIA"), default="bridged")
    if media not in ("bridged", "direct"):
        raise ImproperlyConfigured(f"{own('MEDIA')} is bridged or direct, not {media!r}.")
    return checked(
        UpstreamSettings(
            env.str(own("BASE_URL"), default="").strip(),
            env.str(own("API_KEY"), default="").strip(),
            env.str(own("REALTIME_MODEL"), default="").strip(),
            env.float(shared("TIMEOUT_S"), default=60.0),
            alias=alias,
            settings=prefix,
            realtime_url=env.str(own("REALTIME_URL"), default="").strip(),
            ws_url=env.str(own("WS_URL"), default="").strip(),
            is_direct=media == "direct",
            session_limit_s=env.float(shared("SESSION_LIMIT_S"), default=0.0),
            chat_models=env.list(own("CHAT_MODELS"), default=[]),
            embedding_models=env.list(own("EMBEDDING_MODELS"), default=[]),
            rerank_models=env.list(own("RERANK_MODELS"), default=[]),
            image_models=env.list(own("IMAGE_MODELS"), default=[]),
            video_models=env.list(own("VIDEO_MODELS"), default=[]),
            vendor=env.str(shared("VENDOR"), default="DashScope"),
            workspace=env.str(own("WORKSPACE"), default="").strip(),
            sees_images=env.bool(own("CHAT_SEES_IMAGES"), default=False),
            dialect=env.str(own("DIALECT"), default="native"),
            transcription_model=env.str(shared("TRANSCRIPTION_MODEL"), default="whisper-1"),
        )
    )


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


UPSTREAMS: tuple[UpstreamSettings, ...] = (_service("UPSTREAM", "upstream"), *map(_further, UPSTREAM_SERVICES))
"""The services, the unnamed one first; without an address it offers nothing."""
