"""What callers send: hibari's rules were written for sentences, and every text is spoken within bounds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
from hibari import Hibari, dsp
from hibari.voices import DEFAULT, voice_path

from tests.thorough import IS_THOROUGH
from voiceapp.engines.hibari.frames import sound_of
from voiceapp.engines.hibari.voices import Model, find_voices
from voiceapp.engines.voices.neural import TextUnreadable
from voiceapp.engines.voices.pieces import pieces
from voiceapp.engines.voices.word_times import SpokenWord

PIECE_S = 0.3
TEXTS = 1000 if IS_THOROUGH else 300
SCRAPS = (
    *("1", "1,", "1.", "9" * 40, "$1,", "€3.50 ", "1/2", "1:02", "2026-11-23", "555-0199 ", "+1 555 ", "-5", "007"),
    *("a-", "word-", "aB", "a'", "'s", "n't", "'", "-", "--", ".", "…", "!?", "(", "[", "](", "/", "\\", "_", "@", "#"),
    *("http://", "www.a.", "a@b.", "x=1;", "{}", "<b>", "&amp;", "def f(x):\n", "\n", "\t", "|", "`", "*", "~", "ˈ"),
    *(
        "🎉",
        "👍🏽",
        "你",
        "Привет ",
        "é",
        "ß",
        "Ω",
        "½",
        "²",
        "٣",
        "Ⅷ",
        "\u200b",
        "\ufeff",
        "\ud800",
        "ﬁ",
        "①",
        "^",
        "$",
    ),
    *("I", "XLII ", "Dr. ", "e.g. ", "U.S.A.", "a.m.", "100%", "km/h", "5km", "°C", "22nd", "supercalifragilistic"),
    *("hello ", "the ", "AAAA", "QWERTY", "[x](/", "/)", ";", ":", "“", '"', "1e9", "^", "$"),
)


def texts() -> Iterator[str]:
    """Each scrap by itself, many times; then mixtures."""
    chosen = random.Random(7)
    yield from (scrap * 2000 for scrap in SCRAPS)
    while True:
        yield "".join(chosen.choice(SCRAPS) * chosen.choice((1, 1, 1, 2, 5, 30)) for _ in range(chosen.randint(1, 40)))


def test_no_text_takes_long_to_read_or_raises_anything_else() -> None:
    model = next(find_voices()).model
    model.read("Ready.")
    took: list[tuple[float, str]] = []
    for text in islice(texts(), TEXTS):
        own = (piece for piece in pieces(text, language="en") if not piece.script)
        for piece in islice(own, 4):
            began = time.thread_time()
            with suppress(TextUnreadable):
                model.read(piece.text)
            took.append((time.thread_time() - began, piece.text))
    assert len(took) > TEXTS
    assert max(took)[0] < PIECE_S, sorted(took)[-3:]


def test_parts_are_what_the_package_makes_at_one_go() -> None:
    """Without the noise, which differs each time."""
    hibari = Hibari()
    ids = np.array([hibari.ids(hibari.g2p("The living room is on the second floor."))], dtype=np.int64)
    frames = [each[0] for each in hibari.sess.run(None, {"ids": ids, "speed": np.ones(1, dtype=np.float32)})]
    frames[2] -= 30
    whole = dsp.synth(*frames, np.random.default_rng())
    parts = list(sound_of(frames, pitch=1.0))
    assert len(parts) > 2
    delay = dsp.N_FFT // 2
    joined = np.concatenate(parts)[delay:]
    assert np.abs(joined[delay:] - whole[delay : len(joined)]).max() < 1e-4


def test_a_model_that_does_not_tell_the_lengths_of_phonemes_speaks_without_times(tmp_path: Path) -> None:
    shipped, other = Path(voice_path(DEFAULT, download_missing=False)), tmp_path / "other.onnx"
    other.write_bytes(shipped.read_bytes().replace(b"/Round_output_0", b"/Other_output_0"))
    for file, timed in ((shipped, ["Hello", "there."]), (other, [])):
        words: list[SpokenWord] = []
        assert sum(map(len, Model(DEFAULT, file).speak("Hello there.", rate=1.0, pitch=1.0, words=words))) > dsp.SR / 2
        assert [word.text for word in words] == timed
