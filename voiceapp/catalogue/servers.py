"""The settings of other model servers: address, key and models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

DIALECTS = ("native", "openai")
"""Dialects of realtime sessions: this server's own, and OpenAI's."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One model server; false without a `base_url`."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    """Its own name for its model."""
    timeout_s: float | None = None

    def __bool__(self) -> bool:
        return bool(self.base_url)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the engine that calls it."""
        found: dict[str, Any] = {"base_url": self.base_url, "api_key": self.api_key, "model": self.model}
        return found if self.timeout_s is None else found | {"timeout_s": self.timeout_s}


@dataclass(frozen=True, slots=True)
class UpstreamSettings(ServerSettings):
    """A service with this server's interface. `base_url` is what comes before `/api/v1`, `model` is its name for its
    realtime model, and a list of models holds names, or pairs `ours:theirs`."""

    image_models: Sequence[str] = ()
    video_models: Sequence[str] = ()
    chat_models: Sequence[str] = ()
    embedding_models: Sequence[str] = ()
    rerank_models: Sequence[str] = ()
    alias: str = "upstream"
    """The operator's name for the service; its realtime model has this name here."""
    settings: str = "UPSTREAM"
    """Prefix of its settings."""
    realtime_url: str = ""
    """Address of its realtime gateway, where it differs."""
    ws_url: str = ""
    """Address of its WebSockets, where it differs."""
    is_direct: bool = False
    """Calls over WebRTC and AOQ are passed on to it, so that their media flow past this server."""
    session_limit_s: float = 0.0
    """Longest realtime session there; 0 if unknown."""
    vendor: str = "DashScope"
    """The word in the names of its headers: `X-DashScope-Async`."""
    workspace: str = ""
    """Workspace of the account there; empty for the key's own."""
    sees_images: bool = False
    """Its chat models take images."""
    dialect: str = "native"
    """Dialect of its realtime sessions: one of `DIALECTS`."""
    transcription_model: str = ""
    """Model that transcribes in sessions with OpenAI's events; empty leaves the choice to callers."""

    def model_options(self, theirs: str) -> dict[str, Any]:
        """Arguments of the engine that calls one of its models over HTTP."""
        return self.address | {"model": theirs}

    @property
    def address(self) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.timeout_s is None else {"timeout_s": self.timeout_s}
        return found | {
            "base_url": self.base_url,
            "api_key": self.api_key,
            "service": self.alias,
            "settings": self.settings,
            "vendor": self.vendor,
            "workspace": self.workspace,
            **({"models_path": "/models"} if self.is_openais else {}),
        }

    @property
    def realtime_options(self) -> dict[str, Any]:
        """Arguments of the engine of its realtime model."""
        return {
            "base_url": self.realtime_url or self.base_url,
            "ws_url": self.ws_url,
            "api_key": self.api_key,
            "model": self.model,
            "settings": self.settings,
            "headers": {f"X-{self.vendor}-WorkSpace": self.workspace} if self.workspace and not self.is_openais else {},
            "session_limit_s": self.session_limit_s,
            "dialect": self.dialect,
            "transcription_model": self.transcription_model,
        }

    @property
    def is_openais(self) -> bool:
        """It is of OpenAI's family, and `base_url` is what comes before `/realtime`."""
        return self.dialect != "native"

    @property
    def is_realtime(self) -> bool:
        """It has a realtime model: one is named, or none of another kind is."""
        return bool(self.model) or not self.has_others

    @property
    def has_others(self) -> bool:
        """It has models of other kinds."""
        others = (
            *(self.chat_models, self.embedding_models, self.rerank_models),
            *(self.image_models, self.video_models),
        )
        return any(others)


def named(models: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Our name and theirs, of each entry of a list of models."""
    for entry in models:
        ours, _, theirs = entry.strip().partition(":")
        if ours:
            yield ours, theirs or ours
