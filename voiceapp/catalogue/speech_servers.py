"""The cards of speech servers that the operator named, with the engines of this process behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.servers import ServerSettings

_ENGINES = "voiceapp.engines"

SPEECH_PROVIDERS = {
    ("openai", "asr"): f"{_ENGINES}.openai.transcription.OpenAIRecognizer",
    ("openai", "tts"): f"{_ENGINES}.openai.speech.OpenAISpeech",
    ("wyoming", "asr"): f"{_ENGINES}.wyoming.recognizer.WyomingRecognizer",
    ("wyoming", "tts"): f"{_ENGINES}.wyoming.synthesizer.WyomingSpeech",
}
"""The provider classes for speech servers, by protocol and kind of model."""


def speech_cards(
    recognition: ServerSettings,
    speech: ServerSettings,
    cards: Sequence[ModelCard],
    *,
    languages: Sequence[str] = (),
    voices: Sequence[str] = (),
) -> list[ModelCard]:
    """The cards of speech inside this process behind those of the servers that the operator named, which take over the
    names that client programs have built in. What runs here speaks and listens where a server fails."""
    found = list(cards)
    for kind, server, options in (
        ("asr", recognition, {"languages": tuple(languages)}),
        ("tts", speech, {"voices": tuple(voices)}),
    ):
        if not server:
            continue
        package = "wyoming" if server.base_url.startswith("tcp://") else "openai"
        own = next(place for place, card in enumerate(found) if card.kind == kind)
        names, found[own] = found[own].aliases, replace(found[own], aliases=())
        name = server.model or f"{kind}-server"
        remote = replace(
            found[own],
            name=name,
            provider=SPEECH_PROVIDERS[package, kind],
            aliases=tuple(alias for alias in names if alias != name),
            options={**server.options, **options},
            runs_here=False,
            languages=tuple(languages) if kind == "asr" else (),
            translates=False,
        )
        found.insert(0, remote)
    return found
