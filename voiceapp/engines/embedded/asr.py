"""Speech recognition by Moonshine tiny-en: English, about 20 ms of a core per second of speech.

The network always says something: silence becomes "You" and noise "Thank you for watching". So what it is unsure of is
read a second time and then dropped, repeats are cut, and long speech is cut in pieces (it loops on a minute in one go).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import numpy as np
from django.conf import settings

from voiceapp.engines.embedded.moonshine import TOKENIZER, Decoded, MoonshineModel, Stopped
from voiceapp.engines.embedded.terms import Terms
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Provider, Recognition, Samples
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.models import weights
from voiceapp.engines.models.lanes import LaneFull, lanes
from voiceapp.errors import EngineRefused

MIN_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 10
"""Shorter than 0.1 s holds no word."""
MAX_SEGMENT_SAMPLES = 20 * ENGINE_SAMPLE_RATE_HZ
MIN_LOG_PROBABILITY = -0.7
"""Mean per token. Measured: speech -0.01 to -0.42, silence and noise -0.74 to -1.19."""
INVENTED = frozenset({"you", "thank you for watching"})
"""Words that the network makes of noise, often quite sure of them, and people hardly ever say alone."""
CREDITS = "©"
"""Subtitles that it learned from end in credits, and it makes them of noise."""
SILENCE = np.zeros(ENGINE_SAMPLE_RATE_HZ // 10, dtype=np.float32)
"""Put before and behind speech. The network sometimes loses the first sound of what begins at once, and sometimes the
silence confuses it; so a reading that it is unsure of is made again without. On 84 variants of recorded speech and 240
short synthetic requests, 25 came out empty without silence, 12 with it, and 5 with the second reading."""
QUIET_SAMPLES = ENGINE_SAMPLE_RATE_HZ // 10
"""Length of the stretch whose loudness decides where to cut."""
MAX_REPEATED_WORDS = 8
"""Longest phrase that is looked for in repetition."""
MAX_WORD_REPEATS = 3
"""People do say "no no no"."""


class Moonshine(Provider):
    """A `Recognizer` of English; shared by all conversations, working in the voice lane."""

    languages = ("en",)
    reads_early = True

    def check(self) -> None:
        weights.check(TOKENIZER)

    async def warm(self) -> None:
        """Load the model and run it once."""
        await lanes().voice.run(_recognize, np.zeros(ENGINE_SAMPLE_RATE_HZ, dtype=np.float32), threading.Event())

    async def recognize(
        self,
        audio: Samples,
        *,
        language: str | None = None,
        among: Sequence[str] | None = None,
        urgent: bool = True,
        terms: Sequence[str] = (),
    ) -> Recognition:
        """See `Recognizer`; a partial result (`urgent=False`) is dropped unless a thread is idle."""
        if language and not is_one_of(language, ("en",)):
            raise EngineRefused(f"The embedded recognizer understands English only, not '{language}'.")
        if len(audio) < MIN_SAMPLES:
            return Recognition("")
        lane = lanes().voice
        if not urgent and not lane.has_idle_thread:
            raise LaneFull("A partial transcript was left out because recognition is busy.")
        stop = threading.Event()
        try:
            return await lane.run(_recognize, audio, stop, (*settings.RECOGNITION_TERMS, *terms))
        finally:
            stop.set()


@cache
def _model() -> MoonshineModel:
    return MoonshineModel()


@lru_cache(maxsize=64)
def _terms(listed: tuple[str, ...]) -> Terms:
    return Terms(listed)


def _recognize(audio: Samples, stop: threading.Event, listed: tuple[str, ...] = ()) -> Recognition:
    model, terms = _model(), _terms(listed)
    texts: list[str] = []
    log_probability, tokens = 0.0, 0
    for segment in segments(audio):
        try:
            decoded = _read(model, segment, stop, terms)
        except Stopped:
            break
        text = terms.spell(without_repeats(decoded.text))
        if not text or decoded.log_probability < MIN_LOG_PROBABILITY or is_invented(text):
            continue
        texts.append(text)
        log_probability += decoded.log_probability * decoded.tokens
        tokens += decoded.tokens
    return Recognition(" ".join(texts), "en", math.exp(log_probability / tokens) if tokens else 0.0)


def _read(model: MoonshineModel, segment: Samples, stop: threading.Event, terms: Terms) -> Decoded:
    """The reading that the network is surer of; the second one is made only when it is unsure of the first."""
    decoded = model.decode(np.concatenate((SILENCE, segment, SILENCE)), stop, terms)
    if decoded.log_probability >= MIN_LOG_PROBABILITY:
        return decoded
    return max(decoded, model.decode(segment, stop, terms), key=lambda reading: reading.log_probability)


def is_invented(text: str) -> bool:
    return text.strip(" .!?").lower() in INVENTED or CREDITS in text


def segments(audio: Samples, most: int = MAX_SEGMENT_SAMPLES) -> Iterator[Samples]:
    """`audio` in pieces of at most 20 s, cut at the quietest tenth of a second in the second half of each; `most` is
    another length, in whole fifths of a second."""
    while len(audio) > most:
        half = most // 2
        pieces = audio[half:most].reshape(-1, QUIET_SAMPLES)
        quietest = int(np.square(pieces).mean(axis=1).argmin())
        cut = half + quietest * QUIET_SAMPLES + QUIET_SAMPLES // 2
        yield audio[:cut]
        audio = audio[cut:]
    if len(audio) >= MIN_SAMPLES:
        yield audio


def without_repeats(text: str) -> str:
    """`text` with phrases that follow themselves at least twice said once, and words said at most three times."""
    words = text.split()
    for length in range(MAX_REPEATED_WORDS, 0, -1):
        words = _collapse(words, length)
    return " ".join(words)


def _collapse(words: list[str], length: int) -> list[str]:
    bare = [word.strip(".,!?;:").casefold() for word in words]
    kept: list[str] = []
    at = 0
    while at < len(words):
        phrase = bare[at : at + length]
        end = at + length
        while len(phrase) == length and bare[end : end + length] == phrase:
            end += length
        repeats = (end - at) // length
        if repeats > (MAX_WORD_REPEATS if length == 1 else 2):
            # The last one carries the punctuation of what follows.
            kept.extend(words[end - length : end])
            at = end
        else:
            kept.append(words[at])
            at += 1
    return kept
