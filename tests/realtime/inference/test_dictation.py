"""A long dictation: every sentence in its place, and no more memory for the last than for the first."""

from __future__ import annotations

import os
import time

import dashscope
import numpy as np
import pytest
from dashscope.audio.asr import Recognition

from tests.engines.speech import word_errors
from tests.realtime.product import Product
from tests.realtime.talker import pcm_at

from .test_clients import PIECE, Notes, Voices, address

DICTATION_S = float(os.environ.get("DICTATION_S", "25"))
PATIENCE_S = 60 + DICTATION_S
SENTENCES = (
    "The meeting begins at nine o'clock.",
    "Please send the letter to the new address.",
    "The library is closed on Sunday.",
)
PAUSE_S = 1.2
GROWTH_MB = 40
"""Of a process that holds 300: what allocators and caches come to. Ten minutes of samples would be 38 on the wire, and
twice that as numbers."""


def test_a_long_dictation_is_written_down_without_growth(
    product: Product, voices: Voices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashscope, "base_websocket_api_url", address(product))
    monkeypatch.setattr(dashscope, "api_key", product.keys["good"])
    pause = np.zeros(int(PAUSE_S * 16_000), dtype=np.float32)
    block = b"".join(pcm_at(np.concatenate([voices(sentence), pause]), 16_000) for sentence in SENTENCES)
    blocks = max(2, round(DICTATION_S / (len(block) / 32_000)))
    notes = Notes()
    recognition = Recognition(model="fun-asr-realtime", callback=notes, format="pcm", sample_rate=16_000)
    recognition.start()
    begun, early_mb = time.monotonic(), 0.0
    for number in range(blocks):
        for start in range(0, len(block), PIECE):
            recognition.send_audio_frame(block[start : start + PIECE])
        if number == blocks // 4:
            early_mb = product.resident_mb
    recognition.stop()

    assert notes.ended.get(timeout=PATIENCE_S) == "complete"
    grown_mb = product.resident_mb - early_mb
    print(f"{blocks * len(block) / 32_000:.0f} s in {time.monotonic() - begun:.0f} s, {grown_mb:.1f} MB")
    said = [found for found in notes.results if found["sentence_end"]]
    expected = SENTENCES * blocks
    assert len(said) == len(expected), [found["text"] for found in said]
    errors = sum(word_errors(sentence, found["text"]) for sentence, found in zip(expected, said, strict=True))
    assert errors <= sum(len(sentence.split()) for sentence in expected) / 5
    times = [at for found in said for at in (found["begin_time"], found["end_time"])]
    assert times == sorted(times)
    assert grown_mb < GROWTH_MB
