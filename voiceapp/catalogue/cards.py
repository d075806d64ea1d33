"""Model cards: names, provider and capabilities as values, so that no code has to ask a provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from voiceapp.protocol.items import Author

ModelKind = Literal["realtime", "vad", "turn", "asr", "chat", "tts", "embedding", "rerank", "image", "video"]
Transport = Literal["aoq", "webrtc", "websocket"]


@dataclass(frozen=True, slots=True)
class ChatCapabilities:
    images: bool = False
    """Messages may carry images."""
    tools: bool = False
    """It calls functions."""
    response_format: bool = False
    """It can be told to reply in JSON."""
    instructions: bool = True
    """It follows instructions, as every language model does."""
    reads_sources: bool = False
    """It is given passages of the documents as numbered sources. Without this, documents are quoted where skills and
    documents come first, and are not read where a language model replies alone."""
    is_english: bool = False
    """It replies in English only, whatever language it is spoken to in."""
    converses: bool = True
    """It may hold a conversation: what it says is right often enough. Others serve the instructions, functions
    and formats of programs alone, unless CHAT_ENGINE says otherwise."""
    is_small: bool = False
    """A model so small that it is often wrong, which people who talk to it are told."""


@dataclass(frozen=True, slots=True)
class EmbeddingCapabilities:
    dimensions: frozenset[int] | None = None
    """The lengths of vectors that may be asked for; None leaves it to the engine."""
    default_dimension: int | None = None
    """The length when none is asked for; None: the model's own."""
    has_sparse: bool = False
    has_instruct: bool = False


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the setting `VOICE_MODELS`."""

    name: str
    kind: ModelKind
    provider: str
    """Dotted path of the class that provides it (`voiceapp.engines.interfaces.Provider`); it is built once per process,
    with `options`."""
    title: str = ""
    """Name shown to people; empty shows `name`."""
    aliases: tuple[str, ...] = ()
    """Further names that callers may use: those that client libraries have built in."""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    """Never shown: they may hold the API key of another server."""
    runs_here: bool = False
    """Its work is done by this server's own processes, so that a call costs the operator nothing."""
    service: str = ""
    """The operator's name for the upstream service that serves it; empty for a model of this server."""
    fallbacks: tuple[str, ...] = ()
    """Names of models of the same kind that are asked in turn when this one cannot serve."""
    transports: tuple[Transport, ...] = ()
    """Transports of a realtime model, the preferred one first."""
    forwards_events: bool = False
    """A service that speaks our own dialect holds its sessions: events of a WebSocket pass as they are."""
    forwards_offers: bool = False
    """SDP offers and requests for grants are passed on to another service: media flows past this server."""
    forwards_calls: bool = False
    """Calls of callers who speak OpenAI's current dialect are passed on to the service, which speaks it too."""
    input_rate_hz: int = 16_000
    """Sample rate of `pcm16` input when the caller of a realtime model states none."""
    input_rates_hz: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Sample rates by alias, for client libraries that mean another rate."""
    listens_only: frozenset[str] = frozenset()
    """Names of a realtime model under which it transcribes, and gives no responses."""
    languages: tuple[str, ...] = ()
    """ISO 639-1 codes that a recognition model understands."""
    translates: bool = False
    """A recognition model can also say in English what was said."""
    documents: str = ""
    """Folder that a chat model of an agent reads in the place of the server's documents."""
    forbidden: tuple[str, ...] = ()
    """Words that it neither takes nor gives, beside those of the server."""
    chat: ChatCapabilities = ChatCapabilities()
    embedding: EmbeddingCapabilities = EmbeddingCapabilities()

    def __post_init__(self) -> None:
        if not self.name or not self.provider:
            raise ValueError("A model card needs a name and a provider.")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def origin(self) -> str:
        """Service and name of the model that works: `acme/qwen-plus`, `embedded/assistant`, `server/llama3.2`."""
        return f"{self.service or ('embedded' if self.runs_here else 'server')}/{self.name}"

    @property
    def author(self) -> Author:
        """The writer of this model's replies, as people read it."""
        return Author("model", self.name, may_be_wrong=self.chat.is_small)

    @property
    def is_held_elsewhere(self) -> bool:
        """Another service holds its sessions, and so receives what is said in them."""
        is_forwarded = self.forwards_events or self.forwards_offers or self.forwards_calls
        return is_forwarded or (self.kind == "realtime" and bool(self.service))

    def input_rate_of(self, name: str) -> int:
        """Return the sample rate of `pcm16` input for a caller who spells the model's name like this."""
        return self.input_rates_hz.get(name, self.input_rate_hz)
