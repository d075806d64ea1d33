"""What the embedded assistant does without documents, and what it keeps its hands off."""

from __future__ import annotations

import inspect
import random
import re
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from zoneinfo import ZoneInfo

import pytest
from pytest_django.fixtures import Settings

from voiceapp.engines.assistant import chat, retrieval, skills
from voiceapp.engines.assistant.skills.languages import foreign
from voiceapp.engines.assistant.skills.phrases import Phrases, read
from voiceapp.engines.assistant.skills.scene import Scene
from voiceapp.engines.assistant.skills.session import duration
from voiceapp.engines.assistant.skills.words import plain, request
from voiceapp.engines.interfaces import SessionFacts
from voiceapp.protocol.reminders import Reminder

CRISIS = read("people/care")["texts"]["crisis"]
DISTRESS = Path(__file__).with_name("distress.txt")
"""Sentences of callers who mean to hurt themselves, and after an empty line those of others."""
FRIDAY_EVENING = datetime(2026, 11, 20, 21, 5, tzinfo=ZoneInfo("Europe/Berlin"))


def say(text: str, scene: Scene | None = None) -> str | None:
    found = skills.reply(text, scene or Scene(now=FRIDAY_EVENING))
    return None if found is None else found.text


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Um, can you tell me what time it is please?", "It is 9:05 p.m."),
        ("What time is it in Tokyo?", "In Tokyo it is 5:05 a.m. tomorrow."),
        ("What's today's date?", "Today is Friday, November 20, 2026."),
        ("what was yesterday's date", "Yesterday was Thursday, November 19, 2026."),
        ("what will be the date in three weeks", "That will be Friday, December 11, 2026."),
        ("What day was it 10 days ago?", "That was Tuesday, November 10, 2026."),
        ("What day of the week is December 25th?", "December 25 is a Friday."),
        ("what day was the 4th of July 2020", "July 4, 2020, was a Saturday."),
        ("How many days until Christmas?", "Christmas is on Friday, December 25, 2026, 35 days from now."),
        ("how many days are left till March first", "That is Monday, March 1, 2027, 101 days from now."),
        ("how long until new year's eve", "New Year's Eve is on Thursday, December 31, 2026, 41 days from now."),
        ("how many days until friday", "That is Friday, November 27, 2026, 7 days from now."),
    ],
)
def test_it_knows_the_clock_and_the_calendar(said: str, answer: str) -> None:
    assert say(said) == answer


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("What's twenty one times three?", "21 times 3 is 63."),
        ("What is 3,000 divided by 8?", "3,000 divided by 8 is 375."),
        ("What is two times to?", "2 times 2 is 4."),
        ("what is four plus for", "4 plus 4 is 8."),
        ("what's to plus to", "2 plus 2 is 4."),
        ("two plus three times four", "2 plus 3 times 4 is 14."),
        ("what is (2 + 3) * 4", "(2 plus 3) times 4 is 20."),
        ("What is fifteen per cent of eighty?", "15 percent of 80 is 12."),
        ("20 percent tip on 45 dollars", "20 percent of 45 is 9 dollars."),
        ("What's a twenty percent tip on a $45 bill?", "20 percent of 45 is 9 dollars."),
        ("80 plus 15 percent", "80 plus 15 percent is 92."),
        ("what is 20 percent off 50", "20 percent off 50 is 40."),
        ("what percent of 80 is 20", "20 as a percentage of 80 is 25."),
        ("What is the square root of 144?", "The square root of 144 is 12."),
        ("what is 3 to the fourth power", "3 to the power of 4 is 81."),
        ("one divided by eight", "1 divided by 8 is 0.125."),
        ("minus five plus three", "Minus 5 plus 3 is minus 2."),
        ("three point one four times two", "3.14 times 2 is 6.28."),
        ("subtract five from seven", "7 minus 5 is 2."),
        ("What is ten divided by zero?", "Nothing can be divided by zero."),
        ("nine to the power of nine thousand", "That number is too large to say."),
        ("one third plus one sixth", "One third plus one sixth is 0.5."),
        ("a dozen times twelve", "12 times 12 is 144."),
        ("half a dozen plus two dozen", "6 plus 24 is 30."),
        ("square root of minus four", "A negative number has no real square root."),
    ],
)
def test_it_does_sums(said: str, answer: str) -> None:
    assert say(said) == answer


def test_a_sum_goes_on_from_the_last_result() -> None:
    scene = Scene(last_reply="21 times 3 is 63.")
    assert say("and times two", scene) == "63 times 2 is 126."
    assert say("divide that by nine", scene) == "63 divided by 9 is 7."
    assert say("times two") is None


@pytest.mark.parametrize(
    "said",
    [
        "9**9**9**9",
        "(" * 500 + "1",
        "1" * 300 + "+1",
        "2 to the power of 2 to the power of 900",
    ],
)
def test_a_hostile_sum_costs_nothing(said: str) -> None:
    assert say(said) in (None, "That number is too large to say.")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("How many feet are in a mile?", "1 mile is 5,280 feet."),
        ("convert 10 miles to kilometers", "10 miles are about 16.1 kilometers."),
        ("What is 10 kilometres in miles?", "10 kilometres are about 6.21 miles."),
        ("What is 70°F in Celsius?", "70 degrees Fahrenheit are about 21.11 degrees Celsius."),
        ("minus 40 degrees celsius in fahrenheit", "Minus 40 degrees Celsius are minus 40 degrees Fahrenheit."),
        ("0 kelvin in celsius", "0 kelvin are minus 273.15 degrees Celsius."),
        ("5 feet ten inches in centimeters", "5 feet 10 inches are 177.8 centimeters."),
        ("What is five foot nine in centimetres?", "5 feet 9 inches are about 175 centimetres."),
        ("how many miles are 1000 km", "1,000 kilometers are about 621 miles."),
        ("a millimeter in feet", "1 millimeter is about 0.00328 feet."),
        ("how many ounces are in a cup", "1 cup is 8 fluid ounces."),
        ("How many seconds are there in an hour and a half?", "1.5 hours are 5,400 seconds."),
        ("how many minutes in half an hour", "Half an hour is 30 minutes."),
        ("60 miles per hour in kilometers per hour", "60 miles per hour are about 96.6 kilometers per hour."),
        ("how many liters is a gallon", "1 gallon is about 3.79 liters."),
        ("convert five kilograms to meters", "I cannot turn kilograms into meters: one is mass, the other length."),
    ],
)
def test_it_converts_units(said: str, answer: str) -> None:
    assert say(said) == answer


@pytest.mark.parametrize(
    "said",
    [
        "Say that again.",
        "repeat",
        "Sorry, what?",
        "I didn't catch that.",
    ],
)
def test_it_repeats_what_it_said_last(said: str) -> None:
    assert say(said, Scene(last_reply="It is late.")) == "It is late."
    assert say(said) == "I have not said anything yet."


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("The capital of Turkey, Istanbul?", "No. The capital of Turkey is Ankara."),
        ("the capital of Turkey, Ankara?", "Yes. The capital of Turkey is Ankara."),
        ("Is Sydney the capital of Australia?", "No. The capital of Australia is Canberra."),
        ("do they use the euro in Sweden", "People in Sweden pay with the Swedish krona."),
        ("who are the neighbors of Japan", "Japan has no borders on land."),
        ("which is bigger, Spain or Portugal?", "Spain is larger: 505,000 square kilometers against 92,400."),
        (
            "which has more people, India or China?",
            "China had more people around 2018: 1.41 billion against 1.35 billion.",
        ),
        ("How many moons does Mercury have?", "Mercury has no moons."),
        ("define the word obfuscate", "To obfuscate means to make obscure or unclear."),
        ("what is the opposite of hot", "The opposite of hot is cold."),
        ("when is Easter next year", "Easter is on Sunday, March 28, 2027, 128 days from now."),
        ("when is Memorial Day?", "Memorial Day is on Monday, May 31, 2027, 192 days from now."),
        ("how many days does February 2028 have", "In 2028 February has 29 days."),
        ("how many days in February 2100", "In 2100 February has 28 days."),
        ("how many days are in February of the year 2024", "In 2024 February has 29 days."),
        ("how long until half past nine", "It is 25 minutes until 9:30 p.m."),
        ("how long until a quarter to seven in the morning", "It is 9 hours and 40 minutes until 6:45 a.m."),
        ("a jacket is 80 dollars with 25 percent off", "25 percent off 80 is 60 dollars."),
        ("I earn 2500 a month, how much is that in a year?", "2,500 times 12 is 30,000 a year."),
        ("how many days until my birthday on June 3rd", "That is Thursday, June 3, 2027, 195 days from now."),
        (
            "Add onions, garlic, and rice to my list, please",
            "I added onions, garlic and rice. Your list holds onions, garlic and rice.",
        ),
        ("180 cm in feet and inches", "180 centimeters are about 5 feet 11 inches."),
    ],
)
def test_it_replies_from_data(said: str, answer: str) -> None:
    assert say(said) == answer


@pytest.mark.parametrize(
    "said",
    [
        *(
            "What is the capital of Atlantis?",
            "capital of punishment",
            "the population of my list",
            "what does xyzzy mean",
        ),
        *("What is the symbol for love?", "how many moons does Bob have", "is blue a leap year", "when is dinner"),
        *("how long until payday", "how long until half past thirty", "split the atom", "how many days between us"),
    ],
)
def test_what_the_data_does_not_hold_is_not_known(said: str) -> None:
    assert say(said) is None


@pytest.mark.parametrize(
    ("earlier", "said", "answer"),
    [
        (("capital of Austria",), "no, I meant Australia", "The capital of Australia is Canberra."),
        (
            ("capital of Austria", "and of Sweden?"),
            "how many people live there",
            "About 10.2 million people lived in Sweden around 2018.",
        ),
        (
            ("capital of Kenya", "and Ghana"),
            "is it bigger than Spain",
            "Spain is larger: 505,000 square kilometers against 239,000.",
        ),
        (("What time is it?",), "And in London?", "In London it is 8:05 p.m."),
        (("convert 10 miles to kilometers",), "and in feet?", "10 miles are 52,800 feet."),
        (("convert 10 miles to kilometers",), "I meant 100 miles", "100 miles are about 161 kilometers."),
        (("I make 9 euros a week",), "how much is that in a year?", "9 times 52 is 468 a year."),
        (("capital of Austria",), "What about the octopus?", None),
        (("Tell me a joke",), "no, I meant seven", None),
    ],
)
def test_a_request_may_change_the_one_before(earlier: tuple[str, ...], said: str, answer: str | None) -> None:
    assert say(said, Scene(now=FRIDAY_EVENING, earlier=earlier)) == answer


def test_a_correction_takes_the_place_of_the_only_timer() -> None:
    facts = SessionFacts(started_at=0.0, reminders=(Reminder("the 5 minute timer", 300.0, "Up."),))
    scene = Scene(earlier=("Set a timer for 5 minutes",), last_reply="Your timer is set for 5 minutes.", facts=facts)
    for said, cancels in (
        ("wait, no, I meant seven", True),
        ("make it seven minutes", True),
        ("another one for 7 minutes", False),
    ):
        found = skills.reply(said, scene)
        assert found is not None
        assert found.reminders is not None
        assert found.reminders.sets is not None
        assert (found.reminders.sets.in_s, found.reminders.cancels_all) == (420.0, cancels)


def test_it_sums_up_the_latest_exchanges() -> None:
    exchanges = tuple((f"What is {number} plus 1?", f"It is {number + 1}. Really.") for number in range(6))
    summary = say("Summarise our conversation", Scene(exchanges=exchanges))
    assert summary == "The last things were these. " + " ".join(
        f"You said: What is {number} plus 1? I said: It is {number + 1}." for number in range(2, 6)
    )
    assert say("what did we talk about") == "This is the first thing you said."


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Wie spät ist es in Berlin?", "Englisch"),
        ("Quelle est la capitale de la France ?", "anglais"),
        ("¿Puedes hablar español?", "inglés"),
        ("你会说中文吗", "英语"),
        ("I am in Los Angeles", None),
        ("What is in a die?", None),
        ("He was so hot in El Paso", None),
    ],
)
def test_it_says_in_other_languages_that_it_knows_english(said: str, word: str | None) -> None:
    found = foreign(said)
    assert (found is None) if word is None else (found is not None and word in found.text)


def test_it_says_after_you() -> None:
    assert say("Repeat after me: the quick brown fox") == "The quick brown fox."


@pytest.mark.parametrize(
    "said", ["Stop.", "stop talking", "Never mind!", "nevermind", "okay stop", "that's all", "No, thanks."]
)
def test_it_stops_with_a_short_word(said: str) -> None:
    assert say(said) == "Okay."


@pytest.mark.parametrize(
    ("said", "rate", "becomes"),
    [
        ("Speak slower, please.", 1.0, 0.83),
        ("slow down", 0.65, 0.6),
        ("speed up", 1.7, 1.8),
        ("normal speed please", 0.6, 1.0),
    ],
)
def test_it_changes_its_pace(said: str, rate: float, becomes: float) -> None:
    found = skills.reply(said, Scene(facts=SessionFacts(speech_rate=rate)))
    assert found is not None
    assert found.speech_rate == becomes


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        ("Hello!", "Hello."),
        ("How are you today?", "All my parts"),
        ("Who are you?", "I am the built-in assistant"),
        ("are you a real person", "I am the built-in assistant"),
        ("Help.", "I can tell you the time"),
        ("Can you hear me?", "Yes, I hear you."),
        ("testing one two three", "I hear you loud"),
        ("Tell me a joke.", "Why did the microphone"),
    ],
)
def test_it_keeps_up_a_conversation(said: str, begins: str) -> None:
    answer = say(said)
    assert answer is not None
    assert answer.startswith(begins)


def test_intent_leads_to_help_and_accidents_and_idioms_do_not() -> None:
    meant, other = (part.splitlines() for part in DISTRESS.read_text(encoding="utf-8").split("\n\n"))
    assert (len(meant) > 100, len(other) > 150) == (True, True)
    assert [said for said in meant if say(said) != CRISIS] == []
    assert [said for said in other if say(said) == CRISIS] == []


def test_an_emergency_leads_to_its_number_and_talk_of_one_does_not() -> None:
    emergency = read("people/care")["texts"]["emergency"]
    urgent = """the house is on fire|our house is on fire|My kitchen caught fire!|There is a fire|He has a heart attack
        I am having a heart attack|I think I'm having a heart attack|Am I having a stroke?|he's having a heart attack
        my father just had a heart attack|I cannot breathe|she can't breathe|I can't breathe in here|call an ambulance
        Can you call the police?|how do I call an ambulance|she's not breathing|my dad isn't breathing
        I need an ambulance|heart attack"""
    other = """what is a heart attack|what does heart attack mean|how do I call an ambulance in Spanish|a fire
        my song is about heart attack|they say I cannot breathe in this suit|he had a stroke of luck|can I have a stroke
        the man has a heart attack in the film|my uncle had a heart attack last year|I dreamed that the house is on fire
        There is a fire station|this building has a fire exit|what happens when someone has a heart attack
        the house is on fire in the game"""
    assert [said for said in re.split(r"\s*[|\n]\s*", urgent) if say(said) != emergency] == []
    assert [said for said in re.split(r"\s*[|\n]\s*", other) if say(said) == emergency] == []


@pytest.mark.parametrize(
    "said",
    [
        *(
            "Is what I say recorded?",
            "Is this conversation being recorded?",
            "Do you record me?",
            "Are you recording this?",
        ),
        *("Am I being recorded?", "Do you keep what I say?", "What happens to my voice?", "Who can read what I say?"),
    ],
)
def test_it_says_what_is_kept_of_a_conversation(said: str, settings: Settings) -> None:
    kept = say(said)
    assert kept is not None
    assert "not recorded" in kept
    assert "as text for 30 days" in kept
    settings.TRANSCRIPT_DAYS = 0
    assert say(said) == "Your voice is not recorded on this server, and your words are not kept."


def test_another_joke_is_another_one() -> None:
    first = say("tell me a joke")
    assert first is not None
    assert say("tell me another joke", Scene(last_reply=first, replies=(first,))) not in (None, first)


def test_it_knows_the_session() -> None:
    scene = Scene(
        now=FRIDAY_EVENING,
        earlier=("What time is it?", "Thanks."),
        first="What time is it?",
        facts=SessionFacts(started_at=FRIDAY_EVENING.timestamp() - 125, model="voice", voice="en-us", turns=3),
    )
    assert say("How long have we been talking?", scene) == "We have been talking for 2 minutes and 5 seconds."
    assert say("What voice is this?", scene) == 'My voice is called "en-us".'
    assert say("how many questions have I asked", scene) == "This is turn number 3."
    assert say("What did I just say?", scene) == "You said: Thanks."
    assert say("what was my first question", scene) == "You said: What time is it?"
    model = say("Which model are you using?", scene)
    assert model is not None
    assert "built-in assistant" in model
    assert '"voice"' in model


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "less than a second"), (61, "1 minute and 1 second"), (7200, "2 hours"), (90_061, "1 day and 1 hour")],
)
def test_it_words_a_duration(seconds: int, words: str) -> None:
    assert duration(seconds) == words


def test_it_plays() -> None:
    def play(said: str) -> str | None:
        return say(said, Scene(dice=random.Random(7)))

    assert play("flip a coin") in ("Heads.", "Tails.")
    assert play("Roll a die") in [f"{face}." for face in range(1, 7)]
    assert play("roll a twenty sided die") in [f"{face}." for face in range(1, 21)]
    two = play("roll two dice")
    assert two is not None
    assert two.endswith("together.")
    number = play("Pick a number between five and seven.")
    assert number in ("5.", "6.", "7.")
    assert play("pick a random number") == play("pick a random number")
    assert play("How do you spell rhythm?") == "Rhythm: R, H, Y, T, H, M."
    assert play("count to five") == "1, 2, 3, 4, 5."


@pytest.mark.parametrize(
    "said",
    [
        "",
        "...",
        "What time does the store open?",
        "What is the time complexity of quicksort?",
        "It's time to go home.",
        "the times they are changing",
        "What time is it in my life when I should worry?",
        "What time is it on Mars?",
        "Tell me about the date palm.",
        "What day did the war end?",
        "What is the year of the dragon?",
        "How many days does it take to learn Django?",
        "How many days of holiday do I have until I retire?",
        "when is the next release",
        "when is my appointment",
        "how many keys can I make",
        "how many sessions in an hour can a guest open",
        "How many API keys are in a workspace?",
        "one of these days",
        "nine to five",
        "24/7",
        "What is 9/11?",
        "555-1234",
        "my number is 555 1234",
        "it costs two or three times as much",
        "I have two times the work",
        "half of the people left",
        "plan nine from outer space",
        "what is plan b",
        "what is the square of the opposition called",
        "one on one",
        "add a document to the folder",
        "take five",
        "divide and conquer",
        "What are the minimum requirements?",
        "stop the server from crashing",
        "How do I stop a session?",
        "how do I make the assistant stop talking when I speak",
        "why does it repeat itself",
        "Repeat the installation on the second machine with other settings.",
        "the playback is too fast in firefox",
        "why is recognition so slow",
        "make the server faster",
        "How can I speed up the first start?",
        "help me choose a database",
        "what can you do about the latency",
        "which model should I use with CHAT_BASE_URL",
        "hello world in python",
        "thank you notes for a wedding",
        "is this thing secure",
        "who are the developers",
        "How do you write a test?",
        "spell check my document",
        "roll back the last migration",
        "flip the switch",
        "count to the limit",
        "convert text to speech",
        "turn the volume to ten",
        "ten green bottles in a row",
        "a pound of flesh in Shakespeare",
        "five feet of snow fell in December",
        "what is the date format",
        "what is the current version",
        "how long is a session",
        "are you listening on port 8000",
        "wait for the models to load",
        "no language model is configured",
        "good morning america is a show",
        "can you hear me from another room without a headset",
    ],
)
def test_it_leaves_alone_what_it_is_not_asked(said: str) -> None:
    assert say(said, Scene(now=FRIDAY_EVENING, last_reply="2 plus 2 is 4.")) is None


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("The kettle is boiling. What time is it in Tokyo?", "In Tokyo it is 5:05 a.m. tomorrow."),
        ("I am cooking. What is two plus two?", "2 plus 2 is 4."),
        ("We are at home. It is quite dark. What time is it? Thank you.", "It is 9:05 p.m."),
        ("The eggs are in the pot. Set a timer for five minutes.", "I can set timers in a conversation only."),
        ("I did not listen. Say that again, please.", "2 plus 2 is 4."),
    ],
)
def test_what_is_asked_after_something_was_told_is_replied_to(said: str, answer: str) -> None:
    assert say(said, Scene(now=FRIDAY_EVENING, last_reply="2 plus 2 is 4.")) == answer


@pytest.mark.parametrize(
    "said",
    [
        "Summarize the story. What time is it?",
        "How is this word spelled? What time is it?",
        "The teacher asked: How late was I? What time is it?",
        "I have twelve apples. Divide them by four.",
        "I have twelve apples. Divide it by four.",
        "I found a strange insect. What is this?",
        "I want a poem about the sea. Thank you.",
        "My dog is called Rex. Okay.",
        "She read the letter. Good morning.",
        "What is the capital of Atlantis? I am in a hurry.",
        "What time is it on Mars? I am cooking.",
        "I am cooking. What time is it on Mars?",
    ],
)
def test_a_last_sentence_that_leans_on_the_one_before_is_left_alone(said: str) -> None:
    assert say(said, Scene(now=FRIDAY_EVENING, last_reply="2 plus 2 is 4.")) is None


LONG = 200_000
HOSTILE = ("for me ", "this ", "1 foot in a mile ", "a is 1 ", "?", "9 - ", "x")


def patterns() -> Iterator[tuple[str, Callable[[str], object]]]:
    """The regular expressions of the skills and the search, each in the way its module calls it."""
    modules = [import_module(found.name) for found in walk_packages(skills.__path__, f"{skills.__name__}.")]
    for module in (*modules, chat, retrieval):
        for name, value in vars(module).items():
            for used in [value] if isinstance(value, re.Pattern) else ():
                for method in sorted(set(re.findall(rf"\b{name}\.(\w+)\(", inspect.getsource(module)))):
                    yield f"{module.__name__}.{name}", partial(getattr(used, method), *[""] * (method == "sub"))


def test_time_grows_no_faster_than_the_text() -> None:
    readers: dict[str, Callable[[str], object]] = dict(patterns())
    assert len(readers) > 20
    readers |= {"plain": plain, "request": request, "foreign": foreign}
    for piece in HOSTILE:
        text = piece * (LONG // len(piece)) + "!"
        for name, reader in readers.items():
            begun = time.process_time()
            reader(text)
            assert time.process_time() - begun < 5.0, (name, piece)


@pytest.mark.parametrize("template", ["cancel [all|my|all my]* timers", "{one} in {two} in {three} tomorrow"])
def test_no_template_tries_anything_twice(template: str) -> None:
    begun = time.process_time()
    assert not Phrases(template).fits("cancel " + "all my in " * 10_000 + "all my " * 10_000)
    assert time.process_time() - begun < 5.0


def test_it_does_not_read_an_essay() -> None:
    assert say("what time is it " * 40) is None


def test_templates_match_whole_sentences() -> None:
    phrases = Phrases("play [the] (song|album) {name} [now]*", "{count} songs")
    assert phrases.match("play the song yellow submarine now now") == {"name": "yellow submarine"}
    assert phrases.match("play album one") == {"name": "one"}
    assert phrases.match("five songs") == {"count": "five"}
    assert phrases.match("please play the song one") is None
    assert phrases.match("playalbum one") is None


def expanded(template: str, dice: random.Random) -> str:
    """One of the sentences that a template fits."""
    while "[" in template or "(" in template:
        template = re.sub(r"\(([^()\[\]]*)\)", lambda found: dice.choice(found[1].split("|")), template)
        template = re.sub(r"\[([^()\[\]]*)\]\*?", lambda found: dice.choice(["", *found[1].split("|")]), template)
    return " ".join(re.sub(r"\{\w+\}", "zebra", template).split())


ASKED_LATER = {"another", "and_in", "again", "left", "add", "distance", "ago"}
"""Names of templates that depend on what was said before, or fit a part of a sentence only."""


ALSO_IN = {"session": ("product",), "people/company": ("people/beyond",)}
"""Further files of templates of a skill."""


def test_every_template_can_be_reached() -> None:
    folder, dice = Path(skills.__path__[0]), random.Random(1)
    earlier: list[Phrases] = []
    dead = []
    modules = (skill.__module__.partition("skills.")[2].replace(".", "/") for skill in skills.SKILLS)
    for name in (name for module in modules for name in (module, *ALSO_IN.get(module, ()))):
        data = tomllib.loads(file.read_text()) if (file := folder / f"{name}.toml").exists() else {}
        groups = [*data.get("templates", {}).items(), *((r["text"], r["templates"]) for r in data.get("replies", ()))]
        for group, template in ((group, template) for group, templates in groups for template in templates):
            sentences = {expanded(template, dice) for _ in range(200)} - {""}
            if not any(plain(said) == said and not any(other.fits(said) for other in earlier) for said in sentences):
                dead.append((name, group, template))
            if "{" not in template and group not in ASKED_LATER:
                earlier.append(Phrases(template))
    assert len(earlier) > 200
    assert dead == []
