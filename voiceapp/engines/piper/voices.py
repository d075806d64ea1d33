"""Neural voices: the one that is shipped, in several timbres, and those in VOICES_DIR."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from voiceapp.catalogue.client_names import CLIENT_NAMES
from voiceapp.engines.interfaces import Voice
from voiceapp.engines.models import weights
from voiceapp.engines.piper.model import ModelSettings, VoiceUnusable, read_settings

logger = logging.getLogger(__name__)

SHIPPED = "piper/en_US-joe-medium.onnx.json"
"""The settings of the voice that the server brings; its model lies beside it in two halves."""
TIMBRES = (
    ("joe", "Joe, American", 1.0),
    ("joe-deep", "Joe, deeper", 0.88),
    ("joe-light", "Joe, lighter", 1.13),
    ("joe-bright", "Joe, brighter", 1.27),
)
"""Name, title and pitch of the shipped voice. The first is the default."""


@dataclass(frozen=True, slots=True)
class NeuralVoice:
    """A voice to choose, and the part of a model that speaks for it."""

    voice: Voice
    model: ModelSettings
    speaker: int = 0
    pitch: float = 1.0
    """Factor to the pitch of the model."""


def find_voices() -> list[NeuralVoice]:
    """The neural voices of this server, the shipped one first; files that cannot be read are named in the log."""
    shipped = weights.path(SHIPPED)
    described = [shipped] if shipped.is_file() else []
    if settings.VOICES_DIR:
        described += sorted(Path(settings.VOICES_DIR).glob("*.onnx.json"))
    found: dict[str, NeuralVoice] = {}
    for file in described:
        try:
            model = read_settings(file.with_suffix(""))
        except VoiceUnusable as error:
            logger.warning(error.for_operators)
            continue
        for voice in _timbres(model) if file == shipped else _speakers(model):
            found.setdefault(voice.voice.name, voice)
    return list(found.values())


def _timbres(model: ModelSettings) -> Iterator[NeuralVoice]:
    for name, title, pitch in TIMBRES:
        yield NeuralVoice(Voice(name, title, "en"), model, pitch=pitch)


def _speakers(model: ModelSettings) -> Iterator[NeuralVoice]:
    name, language = model.file.stem, model.language.split("-")[0].lower()
    if not model.speakers:
        yield NeuralVoice(Voice(name, name, language), model)
    for speaker, number in model.speakers.items():
        yield NeuralVoice(Voice(f"{name}/{speaker}", f"{name}, {speaker}", language), model, number)


def own_name(name: str) -> str:
    """Our voice for a name that client libraries have built in; any other name as it is."""
    wanted = name.casefold()
    for ours, theirs in CLIENT_NAMES["voices"].items():
        if any(wanted == each.casefold() for each in theirs):
            return ours
    return name
