"""A short trial of a chat model: its speed, whether it calls functions and keeps to a schema, and how it sounds."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
import wave
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.interfaces import ChatMessage, ChatRequest
from voiceapp.engines.messages import speakable
from voiceapp.engines.models.providers import provider_of
from voiceapp.errors import EngineError

TRIAL_S = 60.0
SAMPLE_RATE_HZ = 24_000
MAX_SPOKEN = 300
"""Characters."""

ASKED = "Introduce yourself to a caller in two sentences."
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@dataclass(frozen=True, slots=True)
class Trial:
    """Results of a trial; empty where the model failed at it."""

    said: str = ""
    first_token_ms: int | None = None
    tokens_per_s: float | None = None
    calls_functions: bool = False
    writes_json: bool = False
    sound: str = ""
    """A WAV file as a data URL."""
    trouble: str = ""


async def tried(card: ModelCard) -> Trial:
    """Try a model; a failure is part of what it comes to."""
    try:
        async with asyncio.timeout(TRIAL_S):
            said, first_token_ms, tokens_per_s = await _speed(card)
    except (EngineError, TimeoutError) as error:
        return Trial(trouble=error.for_operators if isinstance(error, EngineError) else f"No reply in {TRIAL_S:g} s.")
    calls, writes, sound = await asyncio.gather(_calls(card), _writes(card), _sound(said))
    return Trial(said, first_token_ms, tokens_per_s, calls, writes, sound)


async def _speed(card: ModelCard) -> tuple[str, int | None, float | None]:
    said, pieces, tokens = "", 0, 0
    began, first = time.monotonic(), 0.0
    async with aclosing(provider_of(card).stream(_request(ASKED, max_tokens=120))) as deltas:
        async for delta in deltas:
            if delta.text:
                first = first or time.monotonic()
                said, pieces = said + delta.text, pieces + 1
            tokens = delta.usage.output_tokens if delta.usage else tokens
    lasted_s = time.monotonic() - first
    rate = round((tokens or pieces) / lasted_s, 1) if first and lasted_s > 0.01 else None
    return said, round((first - began) * 1000) if first else None, rate


async def _calls(card: ModelCard) -> bool:
    request = _request("What is the weather in Paris?", tools=(WEATHER,), tool_choice="auto")
    return card.chat.tools and "paris" in (await _written(card, request))[1].lower()


async def _writes(card: ModelCard) -> bool:
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    request = _request("Which city has the Eiffel Tower? Reply in JSON.", extra={"response_format": form})
    try:
        found = json.loads((await _written(card, request))[0]) if card.chat.response_format else None
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("city"), str)


async def _written(card: ModelCard, request: ChatRequest) -> tuple[str, str]:
    """The text of a reply, and the arguments of its calls; what there is of them when it fails."""
    text, arguments = "", ""
    try:
        async with asyncio.timeout(TRIAL_S), aclosing(provider_of(card).stream(request)) as deltas:
            async for delta in deltas:
                text += delta.text
                arguments += delta.tool_call.arguments if delta.tool_call else ""
    except (EngineError, TimeoutError):
        return text, ""
    return text, arguments


async def _sound(said: str) -> str:
    voice = provider_of(catalogue().default("tts"))
    words = speakable(said)[:MAX_SPOKEN]
    spoken = voice.speak(words, voice=voice.default_voice, sample_rate_hz=SAMPLE_RATE_HZ)
    file = io.BytesIO()
    try:
        with wave.open(file, "wb") as sink:
            sink.setnchannels(1)
            sink.setsampwidth(2)
            sink.setframerate(SAMPLE_RATE_HZ)
            async with aclosing(spoken) as pieces:
                async for pcm in pieces:
                    sink.writeframes(pcm)
    except EngineError:
        return ""
    return f"data:audio/wav;base64,{base64.b64encode(file.getvalue()).decode()}"


def _request(said: str, **options: Any) -> ChatRequest:
    return ChatRequest((ChatMessage("user", said),), **{"max_tokens": 200, **options})
