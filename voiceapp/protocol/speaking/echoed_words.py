"""Echo in words: tells words of the caller from the reply's own, come back through the microphone.

Measured on 121 pieces of replies, cut anywhere, and 194 of what callers said, alone and over a reply: what recognition
makes of an echo has three letters or more in a row of what is being said then, most of the time, and never more than 14
in a row of its own. Single letters prove nothing: two thirds of those of any words are found in any sentence, in order.

`python -m tests.bench.interrupting` measures them together.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from math import ceil

from voiceapp.protocol.items import Message

SAME_IN_A_ROW = 3
"""Fewer letters than that are alike by chance."""
SAME_SHARE = 0.45
"""Share of the letters heard. 14 % of echoes have less, and are seldom read with confidence; 3 % of callers have
more."""
SURELY_SAME_IN_A_ROW = 4
OWN_IN_A_ROW = 16
"""Letters in a row, with at most three of the reply's among them, that are the caller's whatever else was heard."""
UNFOUND_SAME_SHARE = 0.8
UNFOUND_OWN_IN_A_ROW = 4
"""Limits where no echo was found in the sound: a question about a reply has many of its words, and one of its own."""
COMPARED_CHARACTERS = 160
"""The last words decide; what was said meanwhile and shortly before is at most twice as long."""
CHARACTERS_PER_S = 20.0
"""Speed of a voice, where it is not known yet how long a text takes."""


def said_between(message: Message, start_ms: float, end_ms: float) -> str:
    """The text of a reply between two positions in its audio."""
    start_ms = max(0.0, start_ms)
    known_ms = message.marks[-1][1] if message.marks else 0.0
    first, last = (len(message.said_until(min(until_ms, known_ms))) for until_ms in (start_ms, end_ms))
    if end_ms > known_ms:
        last += ceil((end_ms - max(known_ms, start_ms)) / 1000 * CHARACTERS_PER_S)
    return message.text[first:last]


def are_echoed(words: str, said: str, *, is_likely: bool) -> bool:
    """True if most letters of `words` are in `said`; unless an echo is likely, nearly all."""
    heard, text = letters(words[-COMPARED_CHARACTERS:]), letters(said[-2 * COMPARED_CHARACTERS :])
    same, own, end = 0, 0, 0
    for block in SequenceMatcher(None, heard, text, autojunk=False).get_matching_blocks():
        if block.size >= SAME_IN_A_ROW:
            same += block.size
        if block.size >= SURELY_SAME_IN_A_ROW or not block.size:  # the last block is empty
            own = max(own, block.a - end)
            end = block.a + block.size
    share, most = (SAME_SHARE, OWN_IN_A_ROW) if is_likely else (UNFOUND_SAME_SHARE, UNFOUND_OWN_IN_A_ROW)
    return own < most and same >= share * len(heard)


def letters(text: str) -> str:
    """The letters and digits of a text, without case."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())
