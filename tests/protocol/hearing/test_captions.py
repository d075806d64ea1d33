"""Words on show while somebody speaks."""

from __future__ import annotations

import random

from voiceapp.protocol.hearing.captions import KEPT_S, Captions, bare


def shown(captions: Captions, words: str, now: float) -> str:
    stable, rest = captions.show(words.split(), now)
    return " ".join([*stable, *rest])


def test_what_two_readings_agree_on_is_stable() -> None:
    captions = Captions()
    assert captions.show(["turn", "on"], 0.0) == ([], ["turn", "on"])
    assert captions.show(["turn", "off", "the"], 0.5) == (["turn"], ["off", "the"])
    assert captions.show(["turn", "off", "the", "lamp"], 0.7) == (["turn", "off", "the"], ["lamp"])


def test_young_words_may_change_and_old_ones_stay() -> None:
    captions = Captions()
    shown(captions, "Tell me", 0.0)
    assert shown(captions, "Help me about", 0.5) == "Help me about"
    assert shown(captions, "Help me about the", 1.0) == "Help me about the"
    assert shown(captions, "Tell me about the train", 1.2) == "Help me about the train"


def test_a_word_put_in_before_them_neither_doubles_nor_hides_words() -> None:
    captions = Captions()
    shown(captions, "open the door", 0.0)
    assert shown(captions, "please open the door now", 0.7) == "open the door now"
    assert shown(captions, "open door now quickly", 0.8) == "open the door now quickly"


def test_marks_follow_the_latest_reading() -> None:
    captions = Captions()
    shown(captions, "What about?", 0.0)
    assert shown(captions, "What about the roof?", 1.0) == "What about the roof?"


def test_no_word_on_show_for_long_is_ever_replaced() -> None:
    choose = random.Random(7)
    captions, since, before = Captions(), dict[int, float](), list[str]()
    for step in range(400):
        now = step * 0.25
        words = [choose.choice(("one", "two", "three")) for _ in range(choose.randrange(1, 9))]
        after = shown(captions, " ".join(words), now).split()
        for place, word in enumerate(before):
            is_same = place < len(after) and bare(after[place]) == bare(word)
            assert is_same or now - since[place] < KEPT_S
        since = {
            place: since[place] if place < len(before) and before[place] == word else now
            for place, word in enumerate(after)
        }
        before = after
