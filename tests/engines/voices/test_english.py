"""What is written and what is said where hibari's own rules would read it wrong."""

from __future__ import annotations

import re

import pytest
from hibari.g2p import G2P

from voiceapp.engines.voices.english import readable
from voiceapp.engines.voices.pieces import pieces

CASES = [
    ("9" * 40, " ".join(["nine"] * 40)),
    # Numbers
    ("Agent 007 is here.", "Agent zero zero seven is here."),
    ("The 1st, 2nd, 3rd and 21st.", "The first, second, third and twenty-first."),
    ("Version 2.10.3 is out.", "Version two point ten point three is out."),
    # Years and dates
    ("From 1914-1918.", "From nineteen fourteen to nineteen eighteen."),
    # Times
    ("It took 1:02:30.", "It took one hour, two minutes and thirty seconds."),
    ("It took 0:01:01 or 2:00:05.", "It took one minute and one second or two hours and five seconds."),
    ("At 1:02:30 PM and 10:30:00.", "At one oh two and thirty seconds P.M. and ten thirty."),
    # Money
    ("It costs $3.50.", "It costs three dollars and fifty cents."),
    ("It costs 5 million €.", "It costs five million euros."),
    ("Some 1.5 billion $ a year.", "Some one point five billion dollars a year."),
    ("It costs US$5, or US$5 million.", "It costs five dollars, or five million dollars."),
    # Abbreviations
    ("Fruit, e.g. apples.", "Fruit, for example, apples."),
    ("One, i.e. this.", "One, that is, this."),
    ("See p. 12 and Fig. 3.", "See page twelve and figure three."),
    # Addresses
    ("Mail info@example.com now.", "Mail info at example dot com now."),
    ("See https://example.org/docs.", "See example dot org slash docs."),
    ("Look at example.com for more.", "Look at example dot com for more."),
    ("Call 555-0199.", "Call five five five, zero one nine nine."),
    ("Call +1 555 123 4567.", "Call plus one, five five five, one two three, four five six seven."),
    ("See www.example.com.", "See W W W dot example dot com."),
    # Numbers and dates as others write them
    ("In 2020 000 of them.", "In twenty twenty zero zero zero of them."),
    ("See pages 3-7.", "See pages three to seven."),
    ("It took 10 000 years.", "It took ten thousand years."),
    ("Call 800 012 345 now.", "Call eight hundred zero one two three hundred forty-five now."),
    ("Born on 09.08.2020.", "Born on August ninth, twenty twenty."),
    ("Version 9.8.20 is out.", "Version nine point eight point twenty is out."),
    ("Add .5 cups... 5 more.", "Add zero point five cups, five more."),
    ("He is 5'10.", "He is five foot ten."),
    ("^_^ up ^ there", "up there"),
    # Money as others write it
    ("It costs 3,50 €.", "It costs three euros and fifty cents."),
    ("It costs 3.50 € or 20€.", "It costs three euros and fifty cents or twenty euros."),
    ("12 500 € or 1.250,00 €", "twelve thousand five hundred euros or one thousand two hundred fifty euros"),
    ("It made £1bn.", "It made one billion pounds."),
    ("5bn people", "five billion people"),
    ("$1-$2 or $5 - $10 million", "one to two dollars or five to ten million dollars"),
    ("$3.50-$4.20", "three dollars and fifty cents to four dollars and twenty cents"),
    ("$1bn-$2bn", "one billion dollars to two billion dollars"),
    # Letters and marks of others within English
    ("20 m² and 5 km³", "twenty square meters and five cubic kilometers"),
    ("Hawaiʻi", "Hawai'i"),
    ("I donʼt.", "I don't."),
    ("500 μg or 500 µg", "five hundred micrograms or five hundred micrograms"),
    ("5 Ω or 2 kΩ", "five ohms or two kilohms"),
    ("π and Δt", "pi and delta T"),
    ("a cafe\u0301", "a café"),
    # Markdown
    ("This is **very** _important_.", "This is very important."),
    ("See [the manual](https://example.org).", "See the manual."),
    ("See [the lake](https://example.org/Lake_(Ohio)).", "See the lake."),
    ("# Title\nText", "Title.\nText"),
    ("- one\n- two", "one.\ntwo."),
    ("Use `make run`.", "Use make run."),
    ("| a | b |\n|---|---|\n| 1 | 2 |", "a, b. one, two."),
    ("Nice 🎉 work", "Nice work"),
    ("```\ncode\n```", "code"),
]


@pytest.fixture(scope="module")
def rules() -> G2P:
    return G2P()


@pytest.mark.parametrize(("written", "said"), CASES)
def test_it_is_said_as_a_person_would(rules: G2P, written: str, said: str) -> None:
    found = [*pieces(written, language="en")]
    assert {piece.script for piece in found} == {""}
    assert sounds("".join(rules(piece.text) for piece in found)) == sounds(rules(said))


def test_what_the_rules_of_the_voice_read_right_is_left_to_them() -> None:
    left = """1,234,567 people|Take 1/2 or ½|Wait 10-12 weeks.|2 + 3 = 5|The 1990s|On 2026-11-22 or 11/05/2026|3 March
        It is 14:05.|Meet at 9:30 am.|A ratio of 1:2:3.|A million € is a lot.|€1,200 a month|$1.5 million|-3 °C tonight
        I have 5 $20 bills.|At 120 km/h.|Dr. Smith vs. Prof. Kim|The U.S. economy|221B Baker St.|2^10 or x²"""
    texts = [text.strip() for text in re.split(r"[|\n]", left)]
    assert [readable(text) for text in texts] == texts


def sounds(phonemes: str) -> str:
    """Phonemes without stress and pauses."""
    return re.sub(r"[ˈˌ,.;:!?()— ]", "", phonemes).replace("ᵻ", "ɪ")


@pytest.mark.parametrize(
    "cut",
    [
        "The balance of your savings account is $12,500.75 at the moment, | and it will grow.",
        "I told all of them that the meeting begins at 10:30 tomorrow, | as it always does.",
        "That city on the river has a population of 1,250,000 people: | all of them are busy.",
        "He was born in a small house on July 4, 1776, | and lived there until the war began.",
        "In all these years Dr. Smith met Mr. Lee vs. Prof. Kim at St. James. | It was fun.",
        "Take No. 5. | See p. 5. | No. | It was Jan. 5. | It is 42. | Fine.",
        "A short sentence, this is, and whole. | Another one",
        "The word | Привет | means hello.",
        "The Greek | η Αθήνα | is a city.",
    ],
)
def test_it_is_cut_where_a_person_would_pause(cut: str) -> None:
    whole = cut.replace(" | ", " ")
    assert [piece.text.strip() for piece in pieces(whole, language="en")] == cut.replace("p. 5", "page 5").split(" | ")


@pytest.mark.parametrize("language", ["en", "de"])
def test_plain_text_stays_as_it_is(language: str) -> None:
    text = 'Well, "this" is plain - isn\'t it? | Yes; it is: so.'
    assert [piece.text for piece in pieces(text.replace("| ", ""), language=language)] == text.split(" | ")


def test_other_languages_are_read_by_their_own_rules() -> None:
    assert [piece.text for piece in pieces("z. B. 3,50 €, 5 m²", language="de")] == ["z. B. 3,50 €, 5 m²"]
