"""Kokoro's voices: one model that speaks Spanish, French, Hindi, Italian and Portuguese, where an operator asks for it.

Sound takes half of its length on one core, against a hundredth of hibari's: for tasks, and for one caller at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from django.conf import settings

from voiceapp.engines.espeak.voice import Espeak
from voiceapp.engines.interfaces import Samples, Voice
from voiceapp.engines.models import onnx_sessions, weights
from voiceapp.engines.piper.clauses import clauses
from voiceapp.engines.voices.neural import TextUnreadable, VoiceUnusable, in_lane
from voiceapp.engines.voices.pieces import Piece
from voiceapp.engines.voices.sound import Loudness
from voiceapp.engines.voices.word_times import SpokenWord
from voiceapp.errors import EngineUnavailable

FILE = "kokoro/kokoro-v1.0.int8.onnx"
STYLES = Path(__file__).with_name("styles.npz")
"""Each voice at eleven of the 510 lengths of text that it has a style for; between them, 1 % lies beside the line."""
LONGEST_PIECE = 100
"""Characters: while 60 are heard, so many are made."""
LONGEST_STEP_S = 30.0
SLOWEST, QUICKEST = 0.5, 2.0
"""Range of rates at which the model still speaks clearly."""
VOICES = (
    ("ef_dora", "Spanish, woman", "es"),
    ("em_alex", "Spanish, man", "es"),
    ("ff_siwis", "French, woman", "fr"),
    ("hf_alpha", "Hindi, woman", "hi"),
    ("hm_omega", "Hindi, man", "hi"),
    ("if_sara", "Italian, woman", "it"),
    ("im_nicola", "Italian, man", "it"),
    ("pf_dora", "Portuguese (Brazil), woman", "pt"),
    ("pm_alex", "Portuguese (Brazil), man", "pt"),
)
"""The names that Kokoro's makers gave them, titles, languages."""
PHONEMIZERS = {"pt": "pt-br"}
"""Voices of espeak-ng whose phonemes the model learned, where they are called otherwise than the language."""
_ONE_SYMBOL = dict(zip("aɪ aʊ eɪ oʊ əʊ ɔɪ dʒ tʃ dz ts".split(), "IWAOQYʤʧʣʦ", strict=True))  # noqa: SIM905
"""Phonemes of espeak-ng that are one symbol to the model."""
_PAIRS = re.compile("|".join(_ONE_SYMBOL))


@dataclass(frozen=True, slots=True)
class KokoroVoice:
    """A `NeuralVoice`."""

    voice: Voice
    loudness: Loudness
    phonemizer: Espeak
    longest_piece: int = LONGEST_PIECE
    sample_rate_hz: int = 24_000

    async def sound(self, piece: Piece, *, rate: float, words: list[SpokenWord]) -> AsyncGenerator[Samples, None]:
        """See `NeuralVoice`; in one part."""
        found, language = clauses(piece), self.voice.language
        texts = await self.phonemizer.phonemes(list(found.texts), voice=PHONEMIZERS.get(language, language))
        made = _made(self.voice.name, found.phonemes(texts), rate)
        async with aclosing(in_lane(made, longest_step_s=LONGEST_STEP_S)) as parts:
            async for part in parts:
                yield part


def _made(name: str, phonemes: str, rate: float) -> Iterator[Samples]:
    known = _symbols()
    joined = _PAIRS.sub(lambda pair: _ONE_SYMBOL[pair[0]], phonemes)
    spoken = [known[symbol] for symbol in joined if symbol in known]
    lengths, styles = _styles(name)
    if not any(symbol.isalpha() for symbol in joined) or len(spoken) > lengths[-1]:
        raise TextUnreadable(f"The voice {name} cannot read a text.", remedy=f"Phonemes: {len(spoken)}.")
    after = min(max(int(np.searchsorted(lengths, len(spoken))), 1), len(lengths) - 1)
    share = (len(spoken) - lengths[after - 1]) / (lengths[after] - lengths[after - 1])
    style = (1 - share) * styles[after - 1] + share * styles[after]
    try:
        session = onnx_sessions.session(FILE)
    except EngineUnavailable as error:
        raise VoiceUnusable(error.message, remedy=error.remedy) from error
    feed = {
        "tokens": np.array([[0, *spoken, 0]], dtype=np.int64),
        "style": style[None].astype(np.float32),
        "speed": np.array([min(max(rate, SLOWEST), QUICKEST)], dtype=np.float32),
    }
    sound: Samples = session.run(None, feed)[0]
    yield sound.reshape(-1)


@cache
def _symbols() -> Mapping[str, int]:
    """Numbers of the phonemes: hibari learned from this model, and kept them."""
    found: dict[str, int] = json.loads((files("hibari") / "assets" / "vocab.json").read_text(encoding="utf-8"))
    return found


@cache
def _styles(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(STYLES) as kept:
        return kept["lengths"], kept[name].astype(np.float32)


def find_voices(phonemizer: Espeak) -> Iterator[KokoroVoice]:
    """Kokoro's voices of the languages that this server understands; none where the model was not fetched."""
    if settings.BRINGS_KOKORO and weights.path(FILE).is_file():
        for name, title, language in VOICES:
            if language in settings.SPEECH_LANGUAGES:
                yield KokoroVoice(Voice(name, title, language), Loudness(), phonemizer)
