from __future__ import annotations

import pytest

from tests.engines.speech import SENTENCES, load, recordings, spoken, words
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.embedded.terms import Terms
from voiceapp.engines.espeak.voice import Espeak

NAMES = ("Kubernetes", "Tchaikovsky", "Siobhan", "Rachmaninoff", "Guadalupe", "New Brunswick")
TERMS = Terms(NAMES, bonus=1)


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("", 0),
        ("I like", 0),
        ("I like Tch", 3),
        ("I like TCHAIKOVSKY", 11),
        ("I like Tchaikovskys", 0),
        ("Tchaikovsky, Siobhan", 18),
        ("Tchaikovsky and Sio", 14),
        ("in New", 3),
        ("in New Bruns", 9),
        ("in New Brunswick.", 13),
        ("in New York", 0),
    ],
)
def test_a_term_counts_while_it_is_spelled_and_no_more_when_it_breaks(text: str, characters: int) -> None:
    assert TERMS.bonus(text) == characters


def test_terms_are_written_as_the_list_writes_them() -> None:
    assert TERMS.spell("Is siobhan in new brunswick, KUBERNETES?") == "Is Siobhan in New Brunswick, Kubernetes?"
    assert TERMS.spell("New, brunswicker") == "New, brunswicker"


@pytest.mark.parametrize("listed", [(), ("",), ("...", " ")])
def test_a_list_without_words_is_none(listed: tuple[str, ...]) -> None:
    assert not Terms(listed)


async def test_names_of_a_list_are_heard_and_none_invented(moonshine: Moonshine, espeak: Espeak) -> None:
    name = "Rachmaninoff"
    asked = await spoken(espeak, f"I would like to talk about {name}.")
    assert name not in (await moonshine.recognize(asked)).text
    assert name in (await moonshine.recognize(asked, terms=NAMES)).text
    sounds = [load(file) for file, _ in recordings()] + [await spoken(espeak, sentence) for sentence in SENTENCES]
    for sound in sounds:
        heard = await moonshine.recognize(sound, terms=NAMES)
        assert not {word.casefold() for word in NAMES} & set(words(heard.text))
