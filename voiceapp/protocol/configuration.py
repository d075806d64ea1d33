"""The settings of one realtime session: defaults, validation, partial merge, and how they look on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, read_format

DEFAULT_INPUT = AudioFormat("pcm", 16_000)
DEFAULT_OUTPUT = AudioFormat("pcm", 24_000)

TurnType = Literal["server_vad", "semantic_vad"]


@dataclass(frozen=True, slots=True)
class TurnDetection:
    """How the end of a turn is found. A session without it (None) is in manual mode."""

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
    turn_detection: TurnDetection | None = TurnDetection()
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
    passthrough: dict[str, Any] = field(default_factory=dict)
    """Settings that only models elsewhere act on: enable_search, search_options, smooth_output, translation."""

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
            },
            "turn_detection": self.turn_detection.to_wire() if self.turn_detection else None,
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
    changes: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name in patch:
            changes.update(read(config, patch[name]))
    changes.update(_nested_audio(config, patch.get("audio")))
    kept = {name: patch[name] for name in _PASSTHROUGH if patch.get(name) is not None}
    if kept:
        changes["passthrough"] = {**config.passthrough, **kept}
    tools = changes.get("tools", config.tools)
    if tools and {**config.passthrough, **kept}.get("enable_search"):
        raise InvalidParameter("tools and enable_search cannot be used together.", param="session.tools")
    return replace(config, **changes)


def merge_response(config: SessionConfig, patch: dict[str, Any]) -> SessionConfig:
    """`config` with the overrides of one `response.create`; nulls keep the session's value."""
    names = ("modalities", "instructions", "voice", "tools", "tool_choice", "temperature", "top_p", "max_tokens")
    given = {name: patch[name] for name in names if patch.get(name) is not None}
    return merge(config, given)


_PASSTHROUGH = ("enable_search", "search_options", "smooth_output", "translation", "max_image_tokens")


def _modalities(_: SessionConfig, value: object) -> dict[str, Any]:
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        chosen = set(value)
        if chosen in ({"text"}, {"text", "audio"}):
            return {"modalities": ("text", "audio") if "audio" in chosen else ("text",)}
    raise InvalidParameter('modalities must be ["text"] or ["text", "audio"].', param="session.modalities")


def _voice(_: SessionConfig, value: object) -> dict[str, Any]:
    if value is None:  # some clients send null for "keep"
        return {}
    return {"voice": _text(value, "session.voice", limit=64)}


def _instructions(_: SessionConfig, value: object) -> dict[str, Any]:
    return {"instructions": "" if value is None else _text(value, "session.instructions", limit=200_000)}


def _input_format(config: SessionConfig, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        "input_format": read_format(
            value, param="session.input_audio_format", default_rate_hz=config.input_format.sample_rate_hz
        )
    }


def _output_format(config: SessionConfig, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        "output_format": read_format(
            value, param="session.output_audio_format", default_rate_hz=config.output_format.sample_rate_hz
        )
    }


def _transcription(config: SessionConfig, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    given = _object(value, "session.input_audio_transcription")
    model = given.get("model")
    language = given.get("language")
    return {
        "transcription_model": config.transcription_model
        if model is None
        else _text(model, "session.input_audio_transcription.model", limit=128),
        "transcription_language": None
        if language is None
        else _text(language, "session.input_audio_transcription.language", limit=16),
    }


def _turn_detection(config: SessionConfig, value: object) -> dict[str, Any]:
    if value is None:
        return {"turn_detection": None}
    given = _object(value, "session.turn_detection")
    base = config.turn_detection or TurnDetection()
    at = "session.turn_detection."
    kind = given.get("type", base.type)
    if kind == "smart_turn":  # the name one family of models uses for a turn model
        kind = "semantic_vad"
    if kind not in ("server_vad", "semantic_vad"):
        raise InvalidParameter("turn_detection.type must be server_vad or semantic_vad.", param=at + "type")
    changes: dict[str, Any] = {"type": kind}
    for name, low, high in (
        ("silence_duration_ms", 200, 6000),
        ("prefix_padding_ms", 0, 5000),
        ("idle_timeout_ms", 5000, 30_000),
    ):
        if name in given:
            number = given[name]
            changes[name] = None if number is None else _integer(number, at + name, low, high)
    if changes.get("prefix_padding_ms", 0) is None:
        del changes["prefix_padding_ms"]
    if given.get("threshold") is not None:
        changes["threshold"] = _number(given["threshold"], at + "threshold", -1.0, 1.0)
    for name in ("create_response", "interrupt_response"):
        if given.get(name) is not None:
            changes[name] = _boolean(given[name], at + name)
    turn = replace(base, **changes)
    if turn.idle_timeout_ms is not None and turn.type != "server_vad":
        raise InvalidParameter("idle_timeout_ms needs server_vad.", param=at + "idle_timeout_ms")
    return {"turn_detection": turn}


def _tools(_: SessionConfig, value: object) -> dict[str, Any]:
    if value is None:
        return {"tools": ()}
    if not isinstance(value, list) or len(value) > 128:
        raise InvalidParameter("tools must be a list of at most 128 tools.", param="session.tools")
    return {"tools": tuple(_tool(tool, f"session.tools[{i}]") for i, tool in enumerate(value))}


def _tool(value: object, param: str) -> dict[str, Any]:
    """One function tool in the nested form; the flat form of a sister dialect is accepted too."""
    tool = _object(value, param)
    if tool.get("type", "function") != "function":
        raise InvalidParameter(f"{param}.type must be function.", param=f"{param}.type")
    if isinstance(tool.get("function"), dict):
        function = tool["function"]
    else:
        function = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
    if not isinstance(function.get("name"), str) or not function["name"]:
        raise InvalidParameter(f"{param}.function.name is missing.", param=f"{param}.function.name")
    return {"type": "function", "function": function}


def _tool_choice(_: SessionConfig, value: object) -> dict[str, Any]:
    if value in ("auto", "none", "required") or isinstance(value, dict):
        return {"tool_choice": value}
    raise InvalidParameter("tool_choice must be auto, none, required or an object.", param="session.tool_choice")


def _ranged(name: str, low: float, high: float, *, whole: bool = False) -> Any:
    param = f"session.{name}"

    def read(_: SessionConfig, value: object) -> dict[str, Any]:
        if value is None:
            return {}
        if whole:
            return {name: _integer(value, param, int(low), int(high))}
        return {name: _number(value, param, low, high)}

    return read


def _max_tokens(_: SessionConfig, value: object) -> dict[str, Any]:
    if value is None or value == "inf":
        return {"max_tokens": None}
    return {"max_tokens": _integer(value, "session.max_tokens", 1, 1_000_000)}


_READERS: dict[str, Any] = {
    "modalities": _modalities,
    "voice": _voice,
    "instructions": _instructions,
    "input_audio_format": _input_format,
    "output_audio_format": _output_format,
    "input_audio_transcription": _transcription,
    "turn_detection": _turn_detection,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "temperature": _ranged("temperature", 0.0, 2.0),
    "top_p": _ranged("top_p", 0.0, 1.0),
    "top_k": _ranged("top_k", 0, 10_000, whole=True),
    "max_tokens": _max_tokens,
    "max_response_output_tokens": _max_tokens,
    "repetition_penalty": _ranged("repetition_penalty", 0.0, 10.0),
    "presence_penalty": _ranged("presence_penalty", -2.0, 2.0),
    "seed": _ranged("seed", 0, 2**63 - 1, whole=True),
    "max_history_turns": _ranged("max_history_turns", 1, 50, whole=True),
}


def _nested_audio(config: SessionConfig, value: object) -> dict[str, Any]:
    """The newer `audio.input` / `audio.output` form, which wins over the flat fields."""
    if value is None:
        return {}
    audio = _object(value, "session.audio")
    changes: dict[str, Any] = {}
    source = _object(audio.get("input") or {}, "session.audio.input")
    sink = _object(audio.get("output") or {}, "session.audio.output")
    if source.get("format") is not None:
        changes["input_format"] = read_format(
            source["format"], param="session.audio.input.format", default_rate_hz=config.input_format.sample_rate_hz
        )
    if "turn_detection" in source:
        changes.update(_turn_detection(config, source["turn_detection"]))
    if source.get("transcription") is not None:
        changes.update(_transcription(config, source["transcription"]))
    if sink.get("format") is not None:
        changes["output_format"] = read_format(
            sink["format"], param="session.audio.output.format", default_rate_hz=config.output_format.sample_rate_hz
        )
    if sink.get("voice") is not None:
        changes["voice"] = _text(sink["voice"], "session.audio.output.voice", limit=64)
    return changes


def _object(value: object, param: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{param} must be an object.", param=param)
    return value


def _text(value: object, param: str, *, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidParameter(f"{param} must be a string.", param=param)
    if len(value) > limit:
        raise InvalidParameter(f"{param} is longer than {limit} characters.", param=param)
    return clean(value)


def _boolean(value: object, param: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(f"{param} must be true or false.", param=param)
    return value


def _number(value: object, param: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidParameter(f"{param} must be a number from {low:g} to {high:g}.", param=param)
    return float(value)


def _integer(value: object, param: str, low: int, high: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameter(f"{param} must be an integer from {low} to {high}.", param=param)
    return value


def clean(text: str) -> str:
    """`text` without NUL characters and lone surrogates, which databases and encoders refuse."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
