"""The settings of one realtime session: defaults, validation, partial merge, and how they look on the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, read_format, with_rate
from voiceapp.protocol.tools import functions, read_tools
from voiceapp.protocol.wire.values import (
    MAX_TERMS,
    MAX_TERMS_TEXT,
    read_boolean,
    read_integer,
    read_language,
    read_metadata,
    read_number,
    read_object,
    read_terms,
    read_text,
    terms_in,
)

DEFAULT_INPUT = AudioFormat("pcm", 16_000)
DEFAULT_OUTPUT = AudioFormat("pcm", 24_000)

MAX_INSTRUCTIONS = 200_000
"""Characters."""

TurnType = Literal["server_vad", "semantic_vad"]
EchoCancellation = Literal["auto", "on", "off"]
Interruptions = Literal["cut", "duck"]


@dataclass(frozen=True, slots=True)
class TurnDetection:
    """Settings of turn detection. A session without it (None) is in manual mode."""

    type: TurnType = "server_vad"
    threshold: float = 0.5
    """Speech probability above which a frame counts as speech; the wire allows -1 to 1."""
    silence_duration_ms: int | None = None
    """Silence that ends a turn. None lets the turn model decide; then the wire shows the default of 800."""
    prefix_padding_ms: int = 300
    create_response: bool = True
    interrupt_response: bool = True
    idle_timeout_ms: int | None = None

    def to_wire(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "threshold": self.threshold,
            "prefix_padding_ms": self.prefix_padding_ms,
            "silence_duration_ms": self.silence_duration_ms if self.silence_duration_ms is not None else 800,
            "create_response": self.create_response,
            "interrupt_response": self.interrupt_response,
            "idle_timeout_ms": self.idle_timeout_ms,
        }


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Everything a client can set. Immutable: an update makes a new one."""

    model: str
    voice: str
    modalities: tuple[str, ...] = ("text", "audio")
    instructions: str = ""
    input_format: AudioFormat = DEFAULT_INPUT
    output_format: AudioFormat = DEFAULT_OUTPUT
    transcription_model: str | None = None
    """Name shown in `input_audio_transcription`; transcription itself is always on."""
    transcription_language: str | None = None
    is_language_noted: bool = False
    """The language was heard, not set: later turns may be in another."""
    languages: tuple[str, ...] = ()
    """The languages that may be spoken where none is set, empty for any; decided when the session begins."""
    terms: tuple[str, ...] = ()
    """Names and other words that the user is likely to say."""
    captions: bool = True
    """The words are shown while the caller speaks: not where the client sets `input_audio_transcription` to null."""
    turn_detection: TurnDetection | None = TurnDetection()
    echo_cancellation: EchoCancellation = "auto"
    """Removal of the reply that comes back through the caller's loudspeaker; `auto`: once it is found."""
    word_times: bool = False
    """The client is told when each word of a reply is heard."""
    approves_tools: bool = False
    """The client asks a person about tools of the operator's that need approval; guests are not offered them."""
    interruptions: Interruptions = "cut"
    """Effect of a caller's first sound on a reply; `duck`: it is ducked until their words are known."""
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"
    temperature: float = 0.9
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    max_history_turns: int | None = None
    fixed: frozenset[str] = frozenset()
    """Names of fields that the client does not change: what it sends for them is ignored."""
    prompt: dict[str, Any] | None = None
    """OpenAI's name for an agent, its version and variables, as the client gave it."""
    listens_only: bool = False
    """Responses do not exist; decided when the session begins."""
    has_track: bool = False
    """Replies go out on a media track that this server paces, as PCM; decided when the session begins."""
    metadata: dict[str, str] | None = None
    """Metadata that the client gave a response, returned with it."""
    mcp_servers: tuple[tuple[str, str], ...] = ()
    """Label and address of each server of tools that may be named; decided when the session begins."""
    passthrough: dict[str, Any] = field(default_factory=dict)
    """Settings that only models of other services act on: enable_search, search_options, smooth_output, translation."""

    @property
    def functions(self) -> tuple[dict[str, Any], ...]:
        """The tools that the client runs itself."""
        return functions(self.tools)

    @property
    def speaks(self) -> bool:
        return "audio" in self.modalities

    def to_wire(self) -> dict[str, Any]:
        """The effective settings, as `session.created` and `session.updated` show them (without object and id)."""
        optional = {
            "top_p": self.top_p,
            "top_k": self.top_k,
            "max_tokens": self.max_tokens,
            "repetition_penalty": self.repetition_penalty,
            "presence_penalty": self.presence_penalty,
            "seed": self.seed,
            "max_history_turns": self.max_history_turns,
            "prompt": self.prompt,
        }
        return {
            "model": self.model,
            "modalities": list(self.modalities),
            "voice": self.voice,
            "instructions": self.instructions,
            "input_audio_format": self.input_format.name,
            "output_audio_format": self.output_format.name,
            "audio": {
                "input": {"format": {"type": self.input_format.name, "sample_rate": self.input_format.sample_rate_hz}},
                "output": {
                    "format": {"type": self.output_format.name, "sample_rate": self.output_format.sample_rate_hz},
                    "voice": self.voice,
                },
            },
            "input_audio_transcription": {
                "model": self.transcription_model,
                **({"language": self.transcription_language} if self.transcription_language else {}),
                **({"keywords": list(self.terms)} if self.terms else {}),
            },
            "turn_detection": self.turn_detection.to_wire() if self.turn_detection else None,
            "echo_cancellation": self.echo_cancellation,
            "interruptions": self.interruptions,
            "word_times": self.word_times,
            "approves_tools": self.approves_tools,
            "tools": list(self.tools),
            "tool_choice": self.tool_choice,
            "temperature": self.temperature,
            "enable_search": False,
            "search_options": {},
            **{name: value for name, value in optional.items() if value is not None},
            **self.passthrough,
        }


def merge(config: SessionConfig, patch: dict[str, Any]) -> SessionConfig:
    """`config` with the fields of a `session.update` applied; absent fields stay, unknown ones are ignored.

    Raises:
        InvalidParameter: a value of the wrong type or out of range; nothing is applied then.
    """
    return _merge(config, with_rate(patch, config.input_format), "session")


def configured(
    config: SessionConfig, usual: dict[str, Any], opening: dict[str, Any], *, fixed: frozenset[str]
) -> SessionConfig:
    """The settings that a session begins with: those that are `usual` for it, and those of its caller's handshake.

    Raises:
        InvalidParameter: as `merge`.
    """
    return merge(replace(merge(config, usual), fixed=fixed), opening)


def with_changes(config: SessionConfig, began: SessionConfig, now: SessionConfig) -> SessionConfig:
    """`config` with what a client has changed of the settings that it `began` with, where they are not fixed."""
    changed = {
        of.name: getattr(now, of.name)
        for of in fields(SessionConfig)
        if of.name != "fixed" and of.name not in config.fixed and getattr(now, of.name) != getattr(began, of.name)
    }
    return replace(config, **changed)


def merge_response(config: SessionConfig, patch: dict[str, Any]) -> SessionConfig:
    """`config` with the overrides of one `response.create`; nulls keep the session's value.

    Raises:
        InvalidParameter: as `merge`.
    """
    given = {name: value for name, value in patch.items() if name in _OF_A_RESPONSE and value is not None}
    return _merge(config, given, "response")


def _merge(config: SessionConfig, patch: dict[str, Any], at: str) -> SessionConfig:
    """`at` begins the path of a refused field: `session` or `response`."""
    changes: dict[str, Any] = {}
    if at == "response":
        changes["metadata"] = read_metadata(patch.get("metadata"), f"{at}.metadata")
    for name, read in _READERS.items():
        if name in patch:
            changes.update(read(config, patch[name], f"{at}.{name}"))
    changes = {name: value for name, value in changes.items() if name not in config.fixed}
    passthrough = changes.setdefault("passthrough", {**config.passthrough, **_passthrough(patch, at)})
    if changes.get("tools", config.tools) and passthrough.get("enable_search"):
        raise InvalidParameter("tools and enable_search cannot be used together.", param=f"{at}.tools")
    return replace(config, **changes)


# Each reader takes the settings so far, the client's value and its path, and returns the fields to change.
Reader = Callable[[SessionConfig, object, str], dict[str, Any]]


def _modalities(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        chosen = set(value)
        if chosen == {"text"}:
            return {"modalities": ("text",)}
        if chosen == {"text", "audio"}:
            return {"modalities": ("text", "audio")}
    raise InvalidParameter('modalities must be ["text"] or ["text", "audio"].', param=at)


def _voice(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
    return {} if value is None else {"voice": read_text(value, at, limit=64)}  # some clients send null for "keep"


def _instructions(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
    return {"instructions": "" if value is None else read_text(value, at, limit=MAX_INSTRUCTIONS)}


def _input_format(config: SessionConfig, value: object, at: str) -> dict[str, Any]:
    if value is None:
        return {}
    return {"input_format": read_format(value, param=at, default_rate_hz=config.input_format.sample_rate_hz)}


def _output_format(config: SessionConfig, value: object, at: str) -> dict[str, Any]:
    if value is None:
        return {}
    return {"output_format": read_format(value, param=at, default_rate_hz=config.output_format.sample_rate_hz)}


def _transcription(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
    given = read_object(value or {}, at)
    changes: dict[str, Any] = {"captions": value is not None}
    corpus = read_object(given.get("corpus") or {}, f"{at}.corpus")
    texts = [(given.get("prompt"), f"{at}.prompt"), (corpus.get("text"), f"{at}.corpus.text")]
    if "keywords" in given or "prompt" in given or "corpus" in given:
        found = [*read_terms(given.get("keywords") or [], f"{at}.keywords")]
        for text, param in texts:
            found += terms_in(read_text(text or "", param, limit=MAX_TERMS_TEXT))
        changes["terms"] = tuple(dict.fromkeys(found))[:MAX_TERMS]
    if given.get("model") is not None:
        changes["transcription_model"] = read_text(given["model"], f"{at}.model", limit=128)
    if "language" in given:
        changes["transcription_language"] = read_language(given["language"], f"{at}.language")
        changes["is_language_noted"] = False
    return changes


def _turn_detection(config: SessionConfig, value: object, at: str) -> dict[str, Any]:
    if value is None:
        return {"turn_detection": None}
    given = read_object(value, at)
    base = config.turn_detection or TurnDetection()
    changes: dict[str, Any] = {"type": _turn_type(given.get("type") or base.type, f"{at}.type")}
    if given.get("threshold") is not None:
        changes["threshold"] = read_number(given["threshold"], f"{at}.threshold", -1.0, 1.0)
    if given.get("prefix_padding_ms") is not None:
        changes["prefix_padding_ms"] = read_integer(given["prefix_padding_ms"], f"{at}.prefix_padding_ms", 0, 5000)
    for name, low, high in (("silence_duration_ms", 200, 6000), ("idle_timeout_ms", 5000, 30_000)):
        if name in given:  # null is a value of these: let the server decide, do not time out
            value = given[name]
            changes[name] = None if value is None else read_integer(value, f"{at}.{name}", low, high)
    for name in ("create_response", "interrupt_response"):
        if given.get(name) is not None:
            changes[name] = read_boolean(given[name], f"{at}.{name}")
    if changes["type"] != "server_vad":
        if changes.get("idle_timeout_ms") is not None:
            raise InvalidParameter("idle_timeout_ms needs server_vad.", param=f"{at}.idle_timeout_ms")
        changes["idle_timeout_ms"] = None
    return {"turn_detection": replace(base, **changes)}


def _turn_type(value: object, at: str) -> str:
    if value == "smart_turn":  # the name one family of models uses for a turn model
        return "semantic_vad"
    if value not in ("server_vad", "semantic_vad"):
        raise InvalidParameter("turn_detection.type must be server_vad or semantic_vad.", param=at)
    return str(value)


def _choice(field_name: str, *choices: str) -> Reader:
    """Null keeps the value."""

    def read(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
        if value is not None and value not in choices:
            raise InvalidParameter(f"{field_name} must be {', '.join(choices[:-1])} or {choices[-1]}.", param=at)
        return {} if value is None else {field_name: value}

    return read


def _flag(field_name: str) -> Reader:
    return lambda _, value, at: {} if value is None else {field_name: read_boolean(value, at)}


def _tool_choice(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
    if value is None:
        return {"tool_choice": "auto"}
    if value in ("auto", "none", "required") or isinstance(value, dict):
        return {"tool_choice": value}
    raise InvalidParameter("tool_choice must be auto, none, required or an object.", param=at)


def _number(field_name: str, low: float, high: float, *, below: bool = False) -> Reader:
    """`below`: `high` itself is out of range. Null keeps the value."""

    def read(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
        return {} if value is None else {field_name: read_number(value, at, low, high, below=below)}

    return read


def _integer(field_name: str, low: int, high: int) -> Reader:
    def read(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
        return {} if value is None else {field_name: read_integer(value, at, low, high)}

    return read


def _max_tokens(_: SessionConfig, value: object, at: str) -> dict[str, Any]:
    if value is None or value == "inf":
        return {"max_tokens": None}
    return {"max_tokens": read_integer(value, at, 1, 1_000_000)}


def _nested_audio(config: SessionConfig, value: object, at: str) -> dict[str, Any]:
    """The newer `audio.input` / `audio.output` form, which wins over the flat fields."""
    audio = read_object(value or {}, at)
    source = read_object(audio.get("input") or {}, f"{at}.input")
    sink = read_object(audio.get("output") or {}, f"{at}.output")
    changes = {
        **_input_format(config, source.get("format"), f"{at}.input.format"),
        **_output_format(config, sink.get("format"), f"{at}.output.format"),
        **_voice(config, sink.get("voice"), f"{at}.output.voice"),
    }
    if "transcription" in source:
        changes.update(_transcription(config, source["transcription"], f"{at}.input.transcription"))
    if "turn_detection" in source:
        changes.update(_turn_detection(config, source["turn_detection"], f"{at}.input.turn_detection"))
    return changes


_READERS: dict[str, Reader] = {
    "modalities": _modalities,
    "voice": _voice,
    "instructions": _instructions,
    "input_audio_format": _input_format,
    "output_audio_format": _output_format,
    "input_audio_transcription": _transcription,
    "turn_detection": _turn_detection,
    "echo_cancellation": _choice("echo_cancellation", "auto", "on", "off"),
    "interruptions": _choice("interruptions", "cut", "duck"),
    "word_times": _flag("word_times"),
    "approves_tools": _flag("approves_tools"),
    "tools": lambda config, value, at: {"tools": read_tools(value, at, dict(config.mcp_servers))},
    "tool_choice": _tool_choice,
    "temperature": _number("temperature", 0.0, 2.0, below=True),
    "top_p": _number("top_p", 0.0, 1.0),
    "top_k": _integer("top_k", 0, 10_000),
    "max_tokens": _max_tokens,
    "max_response_output_tokens": _max_tokens,
    "max_output_tokens": _max_tokens,
    "repetition_penalty": _number("repetition_penalty", 0.0, 10.0),
    "presence_penalty": _number("presence_penalty", -2.0, 2.0),
    "seed": _integer("seed", 0, 2**53),
    "max_history_turns": _integer("max_history_turns", 1, 50),
    "prompt": lambda _, value, at: {} if value is None else {"prompt": read_object(value, at)},
    "audio": _nested_audio,  # last: it wins
}
"""Fields of `session.update`; what is not here is ignored, as clients of sister dialects send more."""

_OF_A_RESPONSE = frozenset({*_READERS, "metadata"}) - {
    "audio",
    "input_audio_format",
    "input_audio_transcription",
    "turn_detection",
    "echo_cancellation",
    "interruptions",
    "max_history_turns",
    "prompt",
}
"""Fields that `response.create` may override."""


_FLAGS, _OBJECTS = ("enable_search", "smooth_output"), ("search_options", "translation")
"""Settings that only models of services act on."""

TURN_SETTINGS = frozenset(of.name for of in fields(TurnDetection))
"""Settings of turn detection that reach a service."""
SETTINGS = frozenset({*_READERS, *_FLAGS, *_OBJECTS}) - {"prompt"}
"""Settings of a session that reach a service."""
RESPONSE_SETTINGS = _OF_A_RESPONSE | {*_FLAGS, *_OBJECTS, "conversation", "input"}
"""Settings of a response that reach a service."""


def _passthrough(patch: dict[str, Any], at: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _FLAGS:
        if patch.get(name) is not None:
            found[name] = read_boolean(patch[name], f"{at}.{name}")
    for name in _OBJECTS:
        if patch.get(name) is not None:
            found[name] = read_object(patch[name], f"{at}.{name}")
    return found
