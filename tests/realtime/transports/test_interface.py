"""How events are written, whatever carries them."""

from __future__ import annotations

import json

from voiceapp.protocol.wire import events as ev
from voiceapp.realtime.transports.interface import text_of


def delta(text: str) -> str:
    return text_of(ev.TextDelta(response_id="resp_1", item_id="item_1", output_index=0, delta=text))


def test_letters_take_no_more_bytes_than_they_must() -> None:
    assert '"delta":"現在の時刻"' in delta("現在の時刻")


def test_a_pair_that_an_engine_split_is_one_letter_again_at_the_client() -> None:
    halves = [delta("\ud83d"), delta("\ude00!")]
    assert all(half.encode() for half in halves)
    joined = "".join(json.loads(half)["delta"] for half in halves)
    assert joined.encode("utf-16", "surrogatepass").decode("utf-16") == "😀!"
