"""Defaults, ranges and the partial merge of session settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, TurnDetection, merge, merge_response
from voiceapp.protocol.tools import MAX_TOOLS

CONFIG = SessionConfig(model="voice", voice="Tina", transcription_model="ear")
TOOL = {"type": "function", "function": {"name": "weather", "description": "…", "parameters": {"type": "object"}}}


def with_choices(most: int) -> dict[str, Any]:
    schema = {"properties": {"city": {"enum": [f"City {number}" for number in range(most)]}}}
    return {"type": "function", "function": {"name": "weather", "parameters": schema}}


def refusal(patch: dict[str, Any], config: SessionConfig = CONFIG) -> InvalidParameter:
    with pytest.raises(InvalidParameter) as refused:
        merge(config, patch)
    return refused.value


def test_the_defaults_are_those_of_the_dialect() -> None:
    assert CONFIG.to_wire() == {
        "model": "voice",
        "modalities": ["text", "audio"],
        "voice": "Tina",
        "instructions": "",
        "input_audio_format": "pcm",
        "output_audio_format": "pcm",
        "audio": {
            "input": {"format": {"type": "pcm", "sample_rate": 16_000}},
            "output": {"format": {"type": "pcm", "sample_rate": 24_000}, "voice": "Tina"},
        },
        "input_audio_transcription": {"model": "ear"},
        "turn_detection": {
            "type": "server_vad",
            "threshold": 0.5,
            "prefix_padding_ms": 300,
            "silence_duration_ms": 800,
            "create_response": True,
            "interrupt_response": True,
            "idle_timeout_ms": None,
        },
        "echo_cancellation": "auto",
        "interruptions": "cut",
        "word_times": False,
        "approves_tools": False,
        "tools": [],
        "tool_choice": "auto",
        "temperature": 0.9,
        "enable_search": False,
        "search_options": {},
    }


def test_what_is_absent_stays() -> None:
    changed = merge(CONFIG, {"voice": "Cherry", "temperature": 0.5, "turn_detection": {"threshold": 0.2}})
    again = merge(changed, {"instructions": "Be brief.", "turn_detection": {"prefix_padding_ms": 100}})
    assert (again.voice, again.temperature, again.instructions) == ("Cherry", 0.5, "Be brief.")
    assert again.turn_detection == TurnDetection(threshold=0.2, prefix_padding_ms=100)
    assert merge(again, {}) == again


ACCEPTED: list[tuple[dict[str, Any], str, Any]] = [
    ({"modalities": ["text"]}, "modalities", ("text",)),
    ({"modalities": ["audio", "text"]}, "modalities", ("text", "audio")),
    ({"modalities": ["text", "audio"]}, "modalities", ("text", "audio")),
    ({"voice": None}, "voice", "Tina"),
    ({"instructions": None}, "instructions", ""),
    ({"input_audio_format": "pcm16"}, "input_format", AudioFormat("pcm16", 16_000)),
    ({"input_audio_format": None}, "input_format", AudioFormat("pcm", 16_000)),
    ({"input_audio_format": "pcm", "sample_rate": 8_000}, "input_format", AudioFormat("pcm", 8_000)),
    ({"sample_rate": 48_000}, "input_format", AudioFormat("pcm", 48_000)),
    ({"sample_rate": None}, "input_format", AudioFormat("pcm", 16_000)),
    ({"input_audio_format": "g711_ulaw", "sample_rate": 16_000}, "input_format", AudioFormat("g711_ulaw", 8_000)),
    (
        {"sample_rate": 8_000, "audio": {"input": {"format": {"type": "pcm", "sample_rate": 24_000}}}},
        "input_format",
        AudioFormat("pcm", 24_000),
    ),
    ({"output_audio_format": "pcm24"}, "output_format", AudioFormat("pcm24", 24_000)),
    ({"output_audio_format": "wav"}, "output_format", AudioFormat("wav", 24_000)),
    ({"output_audio_format": None}, "output_format", AudioFormat("pcm", 24_000)),
    ({"input_audio_transcription": None}, "transcription_model", "ear"),
    ({"input_audio_transcription": {}}, "transcription_model", "ear"),
    ({"input_audio_transcription": {"model": None}}, "transcription_model", "ear"),
    ({"input_audio_transcription": {"model": "whisper-1"}}, "transcription_model", "whisper-1"),
    ({"input_audio_transcription": {"language": "en"}}, "transcription_language", "en"),
    ({"input_audio_transcription": {"keywords": ["Siobhan", "New Brunswick"]}}, "terms", ("Siobhan", "New Brunswick")),
    ({"input_audio_transcription": {"prompt": "Siobhan, Niamh;\nAoife."}}, "terms", ("Siobhan", "Niamh", "Aoife")),
    ({"input_audio_transcription": {"prompt": "expect words related to technology"}}, "terms", ()),
    ({"input_audio_transcription": {"corpus": {"text": "Siobhan"}, "prompt": "Niamh"}}, "terms", ("Niamh", "Siobhan")),
    ({"input_audio_transcription": {"keywords": ["x" * 64] * 100}}, "terms", ("x" * 64,)),
    ({"input_audio_transcription": {"prompt": None, "keywords": None, "corpus": None}}, "terms", ()),
    ({"input_audio_transcription": {}}, "captions", True),
    ({"input_audio_transcription": None}, "captions", False),
    ({"audio": {"input": {"transcription": None}}}, "captions", False),
    ({"audio": {"input": {}}}, "captions", True),
    ({"turn_detection": None}, "turn_detection", None),
    ({"tools": None}, "tools", ()),
    ({"tools": [TOOL]}, "tools", (TOOL,)),
    ({"tools": [with_choices(200)] * 5}, "tools", (with_choices(200),) * 5),
    ({"tools": [{"type": "function", **TOOL["function"]}]}, "tools", (TOOL,)),  # type: ignore[dict-item]
    ({"tool_choice": None}, "tool_choice", "auto"),
    ({"tool_choice": "none"}, "tool_choice", "none"),
    ({"tool_choice": {"type": "function", "name": "weather"}}, "tool_choice", {"type": "function", "name": "weather"}),
    ({"temperature": 0}, "temperature", 0.0),
    ({"temperature": 1.99}, "temperature", 1.99),
    ({"temperature": None}, "temperature", 0.9),
    ({"top_p": 1}, "top_p", 1.0),
    ({"top_k": 50}, "top_k", 50),
    ({"max_tokens": None}, "max_tokens", None),
    ({"max_tokens": "inf"}, "max_tokens", None),
    ({"max_tokens": 100.0}, "max_tokens", 100),
    ({"max_response_output_tokens": "inf"}, "max_tokens", None),
    ({"max_response_output_tokens": 5}, "max_tokens", 5),
    ({"repetition_penalty": 1.05}, "repetition_penalty", 1.05),
    ({"presence_penalty": -2}, "presence_penalty", -2.0),
    ({"seed": 7}, "seed", 7),
    ({"max_history_turns": 50}, "max_history_turns", 50),
    ({"enable_search": True}, "passthrough", {"enable_search": True}),
    ({"search_options": {"a": 1}, "smooth_output": None}, "passthrough", {"search_options": {"a": 1}}),
    ({"translation": {"language": "en"}}, "passthrough", {"translation": {"language": "en"}}),
    ({"audio": {"input": {"format": {"sample_rate": 8_000}}}}, "input_format", AudioFormat("pcm", 8_000)),
    ({"audio": {"output": {"voice": "Cherry"}}, "voice": "Ethan"}, "voice", "Cherry"),
    ({"audio": {"output": {"format": {"sample_rate": 48_000}}}}, "output_format", AudioFormat("pcm", 48_000)),
    ({"audio": {"input": {"turn_detection": None}}}, "turn_detection", None),
    ({"audio": {"input": {"transcription": {"language": "en"}}}}, "transcription_language", "en"),
    ({"echo_cancellation": "on"}, "echo_cancellation", "on"),
    ({"echo_cancellation": None}, "echo_cancellation", "auto"),
    ({"interruptions": "duck"}, "interruptions", "duck"),
    ({"word_times": True}, "word_times", True),
    ({"approves_tools": True}, "approves_tools", True),
    ({"audio": None}, "voice", "Tina"),
    ({"audio": {"input": None, "output": None}}, "voice", "Tina"),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "name", "value"), ACCEPTED)
def test_it_takes_what_clients_send(patch: dict[str, Any], name: str, value: object) -> None:
    changed = merge(CONFIG, patch)
    assert getattr(changed, name) == value
    json.dumps(changed.to_wire(), allow_nan=False)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"modalities": ["audio"]}, "session.modalities"),
    ({"modalities": []}, "session.modalities"),
    ({"modalities": ["text", "video"]}, "session.modalities"),
    ({"modalities": "text"}, "session.modalities"),
    ({"modalities": [["text"]]}, "session.modalities"),
    ({"modalities": None}, "session.modalities"),
    ({"voice": 5}, "session.voice"),
    ({"voice": "x" * 65}, "session.voice"),
    ({"instructions": ["x"]}, "session.instructions"),
    ({"instructions": "x" * 200_001}, "session.instructions"),
    ({"input_audio_format": "mp3"}, "session.input_audio_format"),
    ({"input_audio_format": ["pcm"], "sample_rate": 8_000}, "session.input_audio_format"),
    ({"sample_rate": 11_025}, "session.sample_rate"),
    ({"sample_rate": "8000"}, "session.sample_rate"),
    ({"output_audio_format": "mp3"}, "session.output_audio_format"),
    ({"audio": {"output": {"format": {"sample_rate": 44_100}}}}, "session.audio.output.format.sample_rate"),
    ({"audio": {"input": "pcm"}}, "session.audio.input"),
    ({"audio": {"output": {"voice": 5}}}, "session.audio.output.voice"),
    ({"input_audio_transcription": "whisper-1"}, "session.input_audio_transcription"),
    ({"input_audio_transcription": {"model": 1}}, "session.input_audio_transcription.model"),
    ({"input_audio_transcription": {"language": []}}, "session.input_audio_transcription.language"),
    ({"input_audio_transcription": {"language": "german"}}, "session.input_audio_transcription.language"),
    ({"input_audio_transcription": {"keywords": "Siobhan"}}, "session.input_audio_transcription.keywords"),
    ({"input_audio_transcription": {"keywords": ["x"] * 101}}, "session.input_audio_transcription.keywords"),
    ({"input_audio_transcription": {"keywords": ["x" * 65]}}, "session.input_audio_transcription.keywords"),
    ({"input_audio_transcription": {"prompt": "x" * 8193}}, "session.input_audio_transcription.prompt"),
    ({"input_audio_transcription": {"corpus": {"text": 1}}}, "session.input_audio_transcription.corpus.text"),
    ({"turn_detection": "server_vad"}, "session.turn_detection"),
    ({"turn_detection": {"type": "none"}}, "session.turn_detection.type"),
    ({"turn_detection": {"type": 5}}, "session.turn_detection.type"),
    ({"turn_detection": {"create_response": "yes"}}, "session.turn_detection.create_response"),
    ({"turn_detection": {"interrupt_response": 1}}, "session.turn_detection.interrupt_response"),
    ({"turn_detection": {"type": "semantic_vad", "idle_timeout_ms": 6000}}, "session.turn_detection.idle_timeout_ms"),
    ({"echo_cancellation": True}, "session.echo_cancellation"),
    ({"echo_cancellation": "loud"}, "session.echo_cancellation"),
    ({"interruptions": "never"}, "session.interruptions"),
    ({"word_times": "yes"}, "session.word_times"),
    ({"approves_tools": "yes"}, "session.approves_tools"),
    ({"tools": {}}, "session.tools"),
    ({"tools": [TOOL] * (MAX_TOOLS + 1)}, "session.tools"),
    ({"tools": [5]}, "session.tools[0]"),
    ({"tools": [TOOL, {"type": "mcp"}]}, "session.tools[1].type"),
    ({"tools": [{"type": "function", "function": {}}]}, "session.tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": ""}}]}, "session.tools[0].function.name"),
    ({"tools": [{"type": "function", "function": "f"}]}, "session.tools[0].function"),
    ({"tools": [{"type": "function", "name": "f", "parameters": "x"}]}, "session.tools[0].function.parameters"),
    ({"tools": [{"type": "function", "name": "f", "description": 5}]}, "session.tools[0].function.description"),
    ({"tools": [with_choices(201)]}, "session.tools"),
    ({"tools": [with_choices(200)] * 5 + [with_choices(1)]}, "session.tools"),
    ({"tools": [TOOL], "enable_search": True}, "session.tools"),
    ({"tool_choice": "maybe"}, "session.tool_choice"),
    ({"tool_choice": ["auto"]}, "session.tool_choice"),
    ({"temperature": True}, "session.temperature"),
    ({"temperature": "warm"}, "session.temperature"),
    ({"temperature": float("nan")}, "session.temperature"),
    ({"enable_search": 1}, "session.enable_search"),
    ({"search_options": []}, "session.search_options"),
    ({"max_tokens": "many"}, "session.max_tokens"),
    ({"max_response_output_tokens": 0}, "session.max_response_output_tokens"),
    ({"top_k": 1.5}, "session.top_k"),
    ({"seed": float("inf")}, "session.seed"),
]  # fmt: skip


@pytest.mark.parametrize(("patch", "param"), REFUSED)
def test_it_names_the_field_that_it_refuses(patch: dict[str, Any], param: str) -> None:
    assert refusal(patch).param == param


@pytest.mark.parametrize(
    ("name", "low", "high", "outside"),
    [
        ("temperature", 0, 1.999, (-0.1, 2)),
        ("top_p", 0, 1, (-0.1, 1.1)),
        ("top_k", 0, 10_000, (-1, 10_001)),
        ("max_tokens", 1, 1_000_000, (0, 1_000_001)),
        ("repetition_penalty", 0, 10, (-0.1, 10.1)),
        ("presence_penalty", -2, 2, (-2.1, 2.1)),
        ("seed", 0, 2**53, (-1, 2**53 + 1)),
        ("max_history_turns", 1, 50, (0, 51)),
    ],
)
def test_ranges_end_where_the_dialect_says(name: str, low: float, high: float, outside: tuple[float, float]) -> None:
    for value in (low, high):
        assert getattr(merge(CONFIG, {name: value}), name) == value
    for value in outside:
        assert refusal({name: value}).param == f"session.{name}"


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("threshold", -1, 1),
        ("silence_duration_ms", 200, 6000),
        ("prefix_padding_ms", 0, 5000),
        ("idle_timeout_ms", 5000, 30_000),
    ],
)
def test_ranges_of_turn_detection_end_where_the_dialect_says(name: str, low: int, high: int) -> None:
    for value in (low, high):
        assert getattr(merge(CONFIG, {"turn_detection": {name: value}}).turn_detection, name) == value
    for wrong in (low - 1, high + 1, "500", True):
        refused = refusal({"turn_detection": {name: wrong}})
        assert refused.param == f"session.turn_detection.{name}"


def test_null_keeps_what_has_no_null() -> None:
    nulls = {"threshold": None, "prefix_padding_ms": None, "create_response": None, "type": None}
    changed = merge(CONFIG, {"turn_detection": {"threshold": 0.2, "prefix_padding_ms": 100, "create_response": False}})
    assert merge(changed, {"turn_detection": nulls}) == changed


def test_a_null_silence_lets_the_turn_model_decide() -> None:
    fixed = merge(CONFIG, {"turn_detection": {"silence_duration_ms": 500}})
    free = merge(fixed, {"turn_detection": {"silence_duration_ms": None}})
    assert free.turn_detection == TurnDetection()


def test_smart_turn_is_another_name_for_semantic_vad() -> None:
    turn = merge(CONFIG, {"turn_detection": {"type": "smart_turn", "voiceprint_audio_urls": ["x"]}}).turn_detection
    assert turn == TurnDetection(type="semantic_vad")


def test_changing_the_kind_of_detection_forgets_the_idle_timeout() -> None:
    idle = merge(CONFIG, {"turn_detection": {"idle_timeout_ms": 6000}})
    assert merge(idle, {"turn_detection": {"type": "semantic_vad"}}).turn_detection == TurnDetection("semantic_vad")


def test_turn_detection_comes_back_with_its_defaults_after_manual_mode() -> None:
    manual = merge(merge(CONFIG, {"turn_detection": {"threshold": 0.2}}), {"turn_detection": None})
    assert merge(manual, {"turn_detection": {"type": "server_vad"}}).turn_detection == TurnDetection()


def test_a_language_stays_until_it_is_to_be_detected() -> None:
    english = merge(CONFIG, {"input_audio_transcription": {"language": "en"}})
    assert merge(english, {"input_audio_transcription": {"model": "x"}}).transcription_language == "en"
    for detected in (None, "", "auto", "AUTO"):
        assert merge(english, {"input_audio_transcription": {"language": detected}}).transcription_language is None


@pytest.mark.parametrize(("given", "code"), [("de-AT", "de"), ("de_DE", "de"), ("PT", "pt"), ("iw", "he")])
def test_usual_spellings_of_a_language_are_understood(given: str, code: str) -> None:
    assert merge(CONFIG, {"input_audio_transcription": {"language": given}}).transcription_language == code


def test_a_format_name_keeps_the_rate_that_was_set() -> None:
    narrow = merge(CONFIG, {"audio": {"input": {"format": {"type": "pcm", "sample_rate": 8_000}}}})
    assert merge(narrow, {"input_audio_format": "pcm16"}).input_format == AudioFormat("pcm16", 8_000)


def test_tools_and_search_exclude_each_other_across_updates() -> None:
    searching = merge(CONFIG, {"enable_search": True})
    assert refusal({"tools": [TOOL]}, searching).param == "session.tools"
    assert merge(searching, {"tools": [TOOL], "enable_search": False}).tools == (TOOL,)


def test_what_the_server_shows_can_be_sent_back() -> None:
    changed = merge(CONFIG, {"tools": [TOOL], "temperature": 0.4, "turn_detection": {"silence_duration_ms": 800}})
    assert merge(changed, changed.to_wire()).to_wire() == changed.to_wire()


# ── Overrides of one answer ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_may_override_what_concerns_it() -> None:
    patch = {"modalities": ["text"], "instructions": "Rhyme.", "temperature": 0.1, "max_response_output_tokens": 9}
    answer = merge_response(CONFIG, patch)
    assert (answer.modalities, answer.instructions, answer.temperature, answer.max_tokens) == (
        ("text",), "Rhyme.", 0.1, 9,
    )  # fmt: skip


def test_nulls_and_unknown_fields_keep_the_sessions_value() -> None:
    nulls = {"instructions": None, "modalities": None, "voice": None, "tools": None, "max_tokens": None}
    assert merge_response(CONFIG, {**nulls, "conversation": "auto", "metadata": {}}) == CONFIG


def test_an_answer_cannot_change_how_the_server_listens() -> None:
    assert merge_response(CONFIG, {"turn_detection": None, "input_audio_format": "wav"}) == CONFIG


def test_a_session_shows_the_terms_it_listens_for() -> None:
    named = merge(CONFIG, {"input_audio_transcription": {"prompt": "Siobhan, Niamh"}})
    assert named.to_wire()["input_audio_transcription"] == {"model": "ear", "keywords": ["Siobhan", "Niamh"]}
    assert merge(named, {"input_audio_transcription": {"keywords": []}}).terms == ()
