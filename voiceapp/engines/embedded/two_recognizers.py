"""Recognition by two networks: Moonshine reads English, Whisper the other languages, and English again where Moonshine
is unsure of it.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from voiceapp.engines.embedded.asr import MIN_SAMPLES, QUIET_SAMPLES, Moonshine, is_invented, segments, without_repeats
from voiceapp.engines.embedded.whisper import WhisperModel
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Provider, Recognition, Samples
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.models.lanes import LaneFull, lanes
from voiceapp.errors import EngineRefused, EngineUnavailable
from voiceapp.formats import language_code

DOUBTFUL = 0.82
"""Confidence of Moonshine's (a mean log probability of -0.2) below which Whisper reads the same: the least with which
one half of the recordings is read best (`python -m tests.bench.doubtful`). The other half has 1.4 % wrong words with it
and without, 8.3 % in pink noise 10 dB below, and 5.6 % instead of 9.7 beside four other voices."""
SURE_OF_LANGUAGE = 0.7
"""Share of the probability of all candidates at which a language counts as detected."""
LEAST_CUT_SAMPLES = 6 * ENGINE_SAMPLE_RATE_HZ
"""Shorter speech whose words are too many is none: there Whisper repeats itself without an end."""
FILES = ("model.bin", "config.json")


class MoonshineAndWhisper(Provider):
    """A `Recognizer` of several languages; shared by all conversations, working in the voice lane."""

    reads_early = True

    def __init__(self, *, languages: Sequence[str], folder: str) -> None:
        """`languages` are ISO 639-1 codes, English among them; `folder` holds a Whisper in CTranslate2's form, which is
        loaded when it is first needed."""
        self.languages = tuple(languages)
        self._folder = Path(folder)
        self._english = Moonshine()
        self._loading = threading.Lock()
        self._loaded: WhisperModel | None = None

    def check(self) -> None:
        self._english.check()
        if find_spec("ctranslate2") is None:
            raise EngineUnavailable(
                "The recognizer of other languages is not installed.",
                remedy="Run `pip install -r requirements-whisper.txt`.",
            )
        is_fetched = settings.BRINGS_WHISPER or settings.WHISPER_URL
        if missing := [name for name in FILES if not (self._folder / name).is_file()]:
            raise EngineUnavailable(
                "The recognizer of other languages is not on this server yet.",
                remedy=f"{self._folder} lacks {', '.join(missing)}. "
                + ("Run `python manage.py fetch_models`." if is_fetched else "Set or empty ASR_MODEL."),
            )

    async def warm(self) -> None:
        await self._english.warm()

    async def recognize(
        self,
        audio: Samples,
        *,
        language: str | None = None,
        among: Sequence[str] | None = None,
        urgent: bool = True,
        terms: Sequence[str] = (),
    ) -> Recognition:
        """See `Recognizer`. Partial results (`urgent=False`) are English where no language is expected.

        Only Moonshine knows the terms, so its reading stays where there are some.
        """
        if language and not is_one_of(language, self.languages):
            raise EngineRefused(f"This server understands {', '.join(self.languages)} only, not '{language[:20]}'.")
        has_terms = bool(terms or settings.RECOGNITION_TERMS)
        expected = language_code(language) if language else ""
        candidates = self._candidates(expected, among)
        is_detected = len(candidates) > 1
        is_english = expected == "en" or candidates == ("en",)
        if is_english or not (urgent or expected):
            heard = await self._english.recognize(audio, language="en", urgent=urgent, terms=terms)
            if not is_english and heard.confidence < DOUBTFUL:
                raise LaneFull("A partial transcript of what may be another language was left out.")
            has_none = not (heard.text or is_detected)
            if not urgent or has_none or heard.confidence >= DOUBTFUL or (has_terms and not is_detected):
                return heard
            again = await _surer(heard, self._read(audio, candidates, "en"))
            return heard if has_terms and heard.text and again.language == "en" else again
        if not urgent and not lanes().voice.has_idle_thread:
            raise LaneFull("A partial transcript was left out.")
        heard = await self._read(audio, candidates, expected)
        if heard.language != "en":
            return heard
        reading = self._english.recognize(audio, language="en", urgent=urgent, terms=terms)
        english = await _surer(heard, reading, prefers=has_terms)
        return replace(english, is_detected=heard.is_detected)

    def _candidates(self, expected: str, among: Sequence[str] | None) -> tuple[str, ...]:
        """The languages that it may be."""
        if expected and among is None:
            return (expected,)
        return tuple(code for code in self.languages if not among or code in (expected, *among)) or self.languages

    async def translate(self, audio: Samples, *, language: str | None = None) -> Recognition:
        return await self._read(audio, (language,) if language else self.languages, translates=True)

    async def _read(
        self, audio: Samples, languages: Sequence[str], expected: str = "", *, translates: bool = False
    ) -> Recognition:
        """Whisper's reading, in the likeliest of the languages. If that is not the one `expected`, the surer reading of
        the two."""
        if len(audio) < MIN_SAMPLES:
            return Recognition("", languages[0], 0.0)
        stop = threading.Event()
        try:
            return await lanes().voice.run(self._read_now, audio, languages, expected, translates, stop)
        finally:
            stop.set()

    def _read_now(
        self, audio: Samples, languages: Sequence[str], expected: str, translates: bool, stop: threading.Event
    ) -> Recognition:
        model, language = self._model(), languages[0]
        texts: list[str] = []
        log_probability, tokens, share = 0.0, 0, 0.0
        waiting = deque(segments(audio))
        while waiting and not stop.is_set():
            segment = waiting.popleft()
            encoded = model.encode(segment)
            if len(languages) > 1:
                language, share = model.language(encoded, languages)
            seconds = len(segment) / ENGINE_SAMPLE_RATE_HZ
            decoded = model.decode(encoded, seconds, language, translates=translates)
            if expected and language != expected:
                usual = model.decode(encoded, seconds, expected, translates=translates)
                if usual and (
                    not decoded or share < SURE_OF_LANGUAGE or usual.log_probability > decoded.log_probability
                ):
                    decoded, language = usual, expected
            if decoded is None:
                if len(segment) >= LEAST_CUT_SAMPLES:
                    most = len(segment) // (3 * QUIET_SAMPLES) * 2 * QUIET_SAMPLES
                    waiting.extendleft(reversed([*segments(segment, most)]))
                continue
            text = without_repeats(decoded.text)
            if not text or is_invented(text):
                continue
            texts.append(text)
            languages = (language,)  # of what follows too
            log_probability += decoded.log_probability * decoded.tokens
            tokens += decoded.tokens
        return Recognition(
            " ".join(texts),
            language,
            math.exp(log_probability / tokens) if tokens else 0.0,
            is_detected=bool(texts) and share >= SURE_OF_LANGUAGE,
        )

    def _model(self) -> WhisperModel:
        with self._loading:
            if self._loaded is None:
                self.check()
                self._loaded = WhisperModel(self._folder, threads=lanes().voice.threads)
            return self._loaded


async def _surer(first: Recognition, second: Awaitable[Recognition], *, prefers: bool = False) -> Recognition:
    """The surer of two readings, or the second where that is preferred; the first where it cannot be read again."""
    try:
        again = await second
    except EngineUnavailable:
        return first
    return again if prefers else max(first, again, key=lambda reading: reading.confidence)
