"""What a response took that a service elsewhere wrote, and that is spoken here."""

from __future__ import annotations

from voiceapp.engines.upstream.fields import count_of, object_of
from voiceapp.protocol.reading import JsonObject
from voiceapp.protocol.response import AUDIO_TOKEN_MS, Response


def count_tokens(response: Response, usage: JsonObject) -> None:
    """Take over the tokens that the service has counted."""
    read, used = _details(usage, "input"), response.usage
    used.input_text = count_of(read, "text_tokens")
    used.output_text = count_of(_details(usage, "output"), "text_tokens")
    used.input_audio_ms = count_of(read, "audio_tokens") * AUDIO_TOKEN_MS


def timed(response: Response, theirs: JsonObject) -> JsonObject:
    """Its metrics: the service's up to its first words, and from there ours."""
    ours = response.metrics
    begun, audible = theirs.get("first_token_ms"), ours.first_audio_ms
    if not isinstance(begun, int) or ours.first_token_ms is None:
        return ours.to_wire()
    return {**theirs, "first_audio_ms": None if audible is None else begun + audible - ours.first_token_ms}


def _details(usage: JsonObject, side: str) -> JsonObject:
    """Tokens by kind, which services spell in two ways."""
    return object_of(usage.get(f"{side}_tokens_details") or usage.get(f"{side}_token_details"))
