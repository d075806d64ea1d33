"""hibari's voices: the one in its package in several timbres, and further models of it in VOICES_DIR."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from django.conf import settings
from hibari import Hibari, dsp
from hibari.g2p import G2P
from hibari.g2p.normalize import normalize
from hibari.voices import DEFAULT, VOICES, voice_path

from voiceapp.engines.hibari.frames import sound_of
from voiceapp.engines.hibari.packed import Packed
from voiceapp.engines.interfaces import Samples, Voice
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.models.onnx_sessions import UNLOADABLE
from voiceapp.engines.voices.neural import TextUnreadable, VoiceUnusable, in_lane
from voiceapp.engines.voices.pieces import MAX_CHARS, Piece
from voiceapp.engines.voices.sound import Loudness
from voiceapp.engines.voices.word_times import SpokenWord

MODEL_RATE_HZ: int = dsp.SR
PACE = 1.05
"""Its own pace is 216 words a minute without the silence at the ends of sentences; this gives 227."""
SLOWEST, QUICKEST = 0.5, 2.0
"""Range of rates at which the model still speaks clearly."""
MOST_PHONEMES = 400
"""Phonemes that the model reads at one go, as hibari itself cuts them."""
LENGTHS_SHOWN = b"\x3a\x13\x62\x11\x0a\x0f/Round_output_0"
"""Behind the bytes of a model, this makes a further output of the frames of each phoneme: Protocol Buffers read it as
another part of the same graph (`ModelProto.graph.output.name`)."""
OUTPUTS = 6
"""Default without that setting."""
LONGEST_END = 0.1 * MODEL_RATE_HZ
"""The last sound of a word takes so much; the model counts the pause after it to it."""
READING_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors that its rules raise for texts that they were not written for."""


@dataclass(frozen=True, slots=True)
class Timbre:
    name: str
    title: str
    formants: float
    """Factor to all frequencies of the model's sound."""
    pitch: float
    """Factor to the pitch alone, before."""


TIMBRES = (
    Timbre("woman", "Woman, American", 1.0, 1.0),
    Timbre("woman-light", "Woman, lighter", 1.1, 1.0),
    Timbre("man", "Man, American", 0.87, 0.65),
    Timbre("man-deep", "Man, deeper", 0.85, 0.57),
)
"""Names that speak with the voice in the package; the first is the default."""


class Model:
    """A model. Its methods block."""

    def __init__(self, name: str, file: Path) -> None:
        """`name` is hibari's for the voice."""
        self._name = name
        self._file = file
        self._loading = threading.Lock()
        self._loaded: Hibari | None = None

    def speak(self, text: str, *, rate: float, pitch: float, words: list[SpokenWord]) -> Iterator[Samples]:
        """Sound of `text` at 24 kHz, in parts; its words are added to `words` before them.

        Raises:
            VoiceUnusable: if the model does not load.
            TextUnreadable: if it cannot say this.
        """
        hibari = self.load()
        speed = np.array([min(max(rate * PACE, SLOWEST), QUICKEST)], dtype=np.float32)
        begun = 0
        for part in _parts(self.read(text)):
            ids = np.array([hibari.ids(" ".join(phonemes for _, phonemes in part))], dtype=np.int64)
            made = hibari.sess.run(None, {"ids": ids, "speed": speed})
            frames = made[:OUTPUTS]
            samples = frames[-1].shape[1] * dsp.HOP
            for lengths in made[OUTPUTS:]:
                ends = begun + np.cumsum(lengths) * (samples / lengths.sum())
                words.extend(_placed(part, ends.tolist(), hibari.vocab))
            begun += samples
            yield from sound_of([frame[0] for frame in frames], pitch=pitch)

    def read(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text as they are read, each with the phonemes that the model learned.

        Raises:
            VoiceUnusable: if the model does not load.
            TextUnreadable: if the rules fail on it, or find nothing to say.
        """
        rules = self.load().g2p
        found: list[tuple[str, str]] = []
        word = sounds = ""
        try:
            for token in rules.phonemize_tokens(rules.tokenize(normalize(text))):
                word, sounds = word + token.text, sounds + (token.phonemes or "")
                if token.whitespace:
                    found.append((word, sounds))
                    word = sounds = ""
        except READING_ERRORS as error:
            raise TextUnreadable(f"The voice {self._name} cannot read a text.", remedy=repr(error)) from error
        found = [each for each in (*found, (word, sounds)) if each[1]]
        if not any(symbol.isalpha() for _, sounds in found for symbol in sounds):
            raise TextUnreadable(f"The voice {self._name} finds nothing to say in a text.")
        return found

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def load(self) -> Hibari:
        """Load the model, the first time for half a second.

        Raises:
            VoiceUnusable: if it does not load.
        """
        with self._loading:
            if self._loaded is None:
                try:
                    model, rules = self._file.read_bytes(), _rules(VOICES[self._name]["british"])
                    try:
                        self._loaded = Hibari(self._name, model=model + LENGTHS_SHOWN, g2p=rules)
                    except UNLOADABLE:  # built otherwise: it speaks without the times of its words
                        self._loaded = Hibari(self._name, model=model, g2p=rules)
                    del self._loaded.model_path  # the bytes
                except (*UNLOADABLE, OSError) as error:
                    raise VoiceUnusable(f"The voice {self._name} cannot be read.", remedy=repr(error)) from error
            return self._loaded


@lru_cache
def _rules(is_british: bool) -> G2P:
    rules = G2P(british=is_british)
    _ = rules.oov  # loads what reads words that are in no lexicon
    for lexicon in (rules.lexicon.golds, rules.lexicon.silvers):
        lexicon.d = Packed(lexicon.d)
    rules.tagger.weights = Packed(rules.tagger.weights)
    return rules


def _parts(words: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    part: list[tuple[str, str]] = []
    size = 0
    for word in words:
        size += len(word[1]) + 1
        if part and size > MOST_PHONEMES:
            yield part
            part, size = [], len(word[1]) + 1
        part.append(word)
    yield part


def _placed(words: Iterable[tuple[str, str]], ends: Sequence[float], known: Container[str]) -> Iterator[SpokenWord]:
    """Yield the place of each word in the sound, without the marks around it; each symbol that is known has an end."""
    before = 0
    for word, phonemes in words:
        symbols = [symbol for symbol in phonemes if symbol in known]
        if spoken := [place for place, symbol in enumerate(symbols, start=before) if symbol.isalnum()]:
            begin, last, end = (ends[place] for place in (spoken[0], spoken[-1], spoken[-1] + 1))
            yield SpokenWord(word, begin, min(end, last + LONGEST_END))
        before += len(symbols) + (" " in known)


@dataclass(frozen=True, slots=True)
class HibariVoice:
    """A `NeuralVoice`."""

    voice: Voice
    model: Model
    loudness: Loudness
    formants: float = 1.0
    pitch: float = 1.0
    longest_piece: int = MAX_CHARS

    @property
    def sample_rate_hz(self) -> int:
        return round(MODEL_RATE_HZ * self.formants)

    async def sound(self, piece: Piece, *, rate: float, words: list[SpokenWord]) -> AsyncGenerator[Samples, None]:
        """See `NeuralVoice`."""
        if not self.model.is_loaded:
            await lanes().voice.run(self.model.load)  # without the limit of a step: a server that starts is busy
        # Sound that is played lower is played slower, so it is spoken quicker.
        spoken = self.model.speak(piece.text, rate=rate / self.formants, pitch=self.pitch, words=words)
        async with aclosing(in_lane(spoken)) as parts:
            async for part in parts:
                yield part


def find_voices() -> Iterator[HibariVoice]:
    """hibari's voices on this server, the shipped one first; none is downloaded."""
    shipped = Model(DEFAULT, Path(voice_path(DEFAULT, download_missing=False)))
    for timbre in TIMBRES:
        yield HibariVoice(Voice(timbre.name, timbre.title, "en"), shipped, Loudness(), timbre.formants, timbre.pitch)
    if settings.VOICES_DIR:
        for name, about in VOICES.items():
            if (file := Path(settings.VOICES_DIR) / about["file"]).is_file():
                title = f"{name.capitalize()}, {about['accent']}, {about['gender']}"
                yield HibariVoice(Voice(name, title, about["language"].split("-")[0]), Model(name, file), Loudness())
