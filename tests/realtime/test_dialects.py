"""Which dialect a session is opened in: what the handshake says, for every way to say it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from voiceapp.accounts.temporary_keys import client_secret, read_client_secret
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect
from voiceapp.protocol.openai_realtime.older import OlderDialect
from voiceapp.protocol.wire.dialects import OWN
from voiceapp.realtime.handshake import Wire, read_handshake

TEMPORARY_KEY = "st-" + "a" * 103


@pytest.mark.parametrize("model", ["voice", "qwen3-omni-flash-realtime", "gpt-realtime", "fun-asr-realtime", "unknown"])
@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (Wire({}), OpenAIRealtimeDialect),
        (Wire({}, subprotocols=("realtime", "openai-insecure-api-key.sk-1")), OpenAIRealtimeDialect),
        (Wire({}, beta="realtime=v1"), OlderDialect),
        (Wire({}, subprotocols=("realtime", "openai-beta.realtime-v1")), OlderDialect),
        (Wire({"intent": "transcription"}), OpenAIRealtimeDialect),
        (Wire({}, session={"type": "realtime"}), OpenAIRealtimeDialect),
        (Wire({}, is_openais=False), type(OWN)),
        (Wire({}, is_openais=False, beta="realtime=v1", subprotocols=("realtime",)), type(OWN)),
    ],
)
def test_path_and_header_choose_the_dialect_whatever_the_model(wire: Wire, expected: type, model: str) -> None:
    wire = replace(wire, query={**wire.query, "model": model})
    assert type(read_handshake(wire).dialect) is expected


@pytest.mark.parametrize(
    ("query", "model", "listens_only"),
    [
        ({"intent": "transcription"}, "voice", True),
        ({"intent": "transcription", "model": "gpt-4o-transcribe"}, "voice", True),
        ({"intent": "transcription", "model": "gpt-realtime"}, "gpt-realtime", True),
        ({"intent": "transcription", "model": "no-such-model"}, "no-such-model", True),
        ({"model": "gpt-realtime-whisper"}, "gpt-realtime-whisper", True),
        ({"model": "paraformer-realtime-v2"}, "paraformer-realtime-v2", True),
        ({"model": "gpt-realtime"}, "gpt-realtime", False),
    ],
)
def test_a_session_may_only_transcribe(query: dict[str, str], model: str, listens_only: bool) -> None:
    handshake = read_handshake(Wire(query))
    assert (handshake.model, handshake.listens_only) == (model, listens_only)


def test_a_browser_gives_its_key_in_a_subprotocol() -> None:
    wire = Wire({"model": "gpt-realtime"}, subprotocols=("realtime", "openai-insecure-api-key.sk-1"))
    assert (wire.bearer, wire.subprotocol) == ("Bearer sk-1", "realtime")
    assert Wire({}, subprotocols=("chat",)).subprotocol is None


def test_a_client_secret_brings_model_and_settings() -> None:
    tools = [{"type": "function", "name": "f", "parameters": {"enum": [*range(200)]}}]
    settings = {"type": "realtime", "model": "gpt-realtime", "audio": {"output": {"voice": "marin"}}, "tools": tools}
    secret = client_secret(TEMPORARY_KEY, settings)
    wire = Wire({}, authorization=f"Bearer {secret}")
    handshake = read_handshake(wire)

    assert handshake.model == "gpt-realtime"
    assert handshake.opening["audio"] == {"output": {"voice": "marin"}}
    assert handshake.opening["input_audio_format"] == "pcm24"
    assert "input_audio_format" not in read_handshake(replace(wire, is_openais=False)).opening
    assert "input_audio_format" not in read_handshake(Wire({}, session=settings, has_track=True)).opening


@pytest.mark.parametrize("tail", ["", "!", "AAAA", "eJw", "x" * 5000])
def test_what_is_no_settings_is_none(tail: str) -> None:
    assert read_client_secret(f"ek_{TEMPORARY_KEY}{tail}")[1] == {}


def test_settings_that_do_not_fit_a_header_are_refused() -> None:
    noise = Random(1).randbytes(10_000).hex()
    with pytest.raises(ValueError, match="too large"):
        client_secret(TEMPORARY_KEY, {"instructions": noise})


@pytest.mark.parametrize(
    "session",
    [
        {"audio": 7},
        {"output_modalities": []},
        {"max_output_tokens": "many"},
        {"type": "foo"},
        {"type": {}},
        {"tools": [{"type": "function", "name": "f", "parameters": {"enum": [*range(201)]}}]},
    ],
)
def test_settings_that_cannot_be_read_are_refused_before_the_session(session: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match="session"):
        read_handshake(Wire({"model": "gpt-realtime"}, session=session))
