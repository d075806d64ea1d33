"""Which of several speech engines serves a conversation."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import numpy as np
import pytest

from voiceapp.catalogue.cards import ModelCard
from voiceapp.engines.hearing import HearingPipeline
from voiceapp.engines.interfaces import Recognition, Samples, Voice
from voiceapp.engines.languages import is_one_of
from voiceapp.engines.models.fallback import ConversationRecognizer, ConversationSynthesizer, Link
from voiceapp.engines.models.lanes import cores_in_use
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable
from voiceapp.protocol.work import JudgeTurn, RecognitionFailed, Recognize, Recognized, Result, TurnJudged

AUDIO = np.zeros(1600, dtype=np.float32)


class Ear:
    reads_early = True

    def __init__(self, name: str, *languages: str) -> None:
        self.name = name
        self.languages: Sequence[str] = languages
        self.failure: EngineError | None = None
        self.asked = 0

    async def recognize(self, audio: Samples, *, language: str | None = None, **_: Any) -> Recognition:
        self.asked += 1
        if language and self.languages and not is_one_of(language, self.languages):
            raise EngineRefused(f"It does not know '{language}'.")
        if self.failure:
            raise self.failure
        return Recognition(self.name)


class Mouth:
    def __init__(self, name: str, *voices: str) -> None:
        self.name = name
        self.voices: Sequence[Voice] = tuple(Voice(voice, voice) for voice in voices)
        self.default_voice = voices[0]
        self.fails_after: int | None = None

    async def speak(
        self, text: str, *, voice: str, sample_rate_hz: int, rate: float = 1.0
    ) -> AsyncGenerator[bytes, None]:
        for number in range(2):
            if number == self.fails_after:
                raise EngineUnavailable("The server is gone.", remedy="Check TTS_BASE_URL.")
            yield f"{self.name}:{voice} ".encode()


def recognizer(*ears: Ear) -> ConversationRecognizer:
    links = [Link(ModelCard(ear.name, "asr", "some.where"), ear) for ear in ears]
    return ConversationRecognizer(links, session_id="sess_1")


def synthesizer(*mouths: Mouth) -> ConversationSynthesizer:
    links = [Link(ModelCard(mouth.name, "tts", "some.where"), mouth) for mouth in mouths]
    return ConversationSynthesizer(links, session_id="sess_1")


async def said(mouth: ConversationSynthesizer, voice: str) -> str:
    async with aclosing(mouth.speak("Hello.", voice=voice, sample_rate_hz=16_000)) as sound:
        return b"".join([piece async for piece in sound]).decode()


async def test_the_engine_that_knows_the_language_is_asked() -> None:
    ear = recognizer(Ear("elsewhere", "de", "nl"), Ear("here", "en"))
    assert (await ear.recognize(AUDIO, language="de-CH")).text == "elsewhere"
    assert (await ear.recognize(AUDIO, language="en")).text == "here"
    assert (await ear.recognize(AUDIO)).text == "elsewhere"
    assert list(ear.languages) == ["de", "nl", "en"]
    with pytest.raises(EngineRefused, match="'fr'"):
        await ear.recognize(AUDIO, language="fr")


async def test_words_so_far_are_read_here() -> None:
    elsewhere, here = Ear("elsewhere"), Ear("here", "en")
    ear = recognizer(elsewhere, here)
    assert (await ear.recognize(AUDIO, urgent=False)).text == "here"
    with pytest.raises(EngineUnavailable):
        await ear.recognize(AUDIO, language="de", urgent=False)
    assert not elsewhere.asked


async def test_an_engine_that_fails_is_replaced_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    elsewhere, here = Ear("elsewhere"), Ear("here", "en")
    elsewhere.failure = EngineUnavailable("The server is gone.", remedy="Check ASR_BASE_URL.")
    ear = recognizer(elsewhere, here)
    for _ in range(3):
        assert (await ear.recognize(AUDIO)).text == "here"
    assert elsewhere.asked == 1
    assert caplog.messages == [
        "session sess_1: recognition goes on with the embedded engine: The server is gone. Check ASR_BASE_URL."
    ]


async def test_an_engine_is_replaced_when_it_was_slow_twice_in_a_row() -> None:
    elsewhere, here = Ear("elsewhere"), Ear("here", "en")
    ear = recognizer(elsewhere, here)
    heard = []
    for is_slow in (True, False, True, True, False):
        elsewhere.failure = EngineTimeout("It is late.") if is_slow else None
        heard.append((await ear.recognize(AUDIO)).text)
    assert heard == ["here", "elsewhere", "here", "here", "here"]
    assert elsewhere.asked == 4


async def test_where_no_other_knows_the_language_a_failed_engine_is_asked_again() -> None:
    elsewhere, here = Ear("elsewhere", "de"), Ear("here", "en")
    elsewhere.failure = EngineUnavailable("The server is gone.")
    ear = recognizer(elsewhere, here)
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            await ear.recognize(AUDIO, language="de")
    elsewhere.failure = None
    assert (await ear.recognize(AUDIO, language="de")).text == "elsewhere"


async def test_the_engine_that_has_the_voice_speaks() -> None:
    mouth = synthesizer(Mouth("elsewhere", "anna"), Mouth("here", "joe"))
    assert await said(mouth, "anna") == "elsewhere:anna elsewhere:anna "
    assert await said(mouth, "joe") == "here:joe here:joe "
    assert await said(mouth, "Cherry") == "elsewhere:Cherry elsewhere:Cherry "
    assert mouth.default_voice == "anna"
    assert {voice.name for voice in mouth.voices} == {"anna", "joe"}


@pytest.mark.parametrize("after", [0, 1])
async def test_a_sentence_that_failed_is_said_whole_by_the_other(after: int, caplog: pytest.LogCaptureFixture) -> None:
    elsewhere = Mouth("elsewhere", "anna")
    elsewhere.fails_after = after
    mouth = synthesizer(elsewhere, Mouth("here", "joe"))
    assert (await said(mouth, "anna")).endswith("here:anna here:anna ")
    elsewhere.fails_after = None
    assert await said(mouth, "anna") == "here:anna here:anna "
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(("ears", "reads_early"), [((Ear("here"),), True), ((Ear("elsewhere"), Ear("here")), False)])
async def test_a_turn_that_is_heard_elsewhere_is_not_read_here_before_its_end(
    ears: tuple[Ear, ...], reads_early: bool
) -> None:
    done: list[Result] = []
    hearing = HearingPipeline(turns=Turns(), recognizer=recognizer(*ears), done=done.append, refuse=print)
    with cores_in_use_are(0):
        await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True, is_early=True))
    assert [type(each) for each in done] == [Recognized if reads_early else RecognitionFailed]
    assert sum(ear.asked for ear in ears) == reads_early


@pytest.mark.parametrize("is_calm", [True, False])
async def test_a_lull_is_read_and_judged_in_this_order_by_a_calm_machine_only(is_calm: bool) -> None:
    order: list[str] = []
    done: list[Result] = []

    class Reader(Ear):
        async def recognize(self, *args: Any, **kwargs: Any) -> Recognition:
            order.append("reading")  # which needs an idle thread
            return await super().recognize(*args, **kwargs)

    class Judge(Turns):
        async def end_probability(self, audio: Samples) -> float:
            order.append("judgement")
            return await super().end_probability(audio)

    hearing = HearingPipeline(turns=Judge(), recognizer=recognizer(Reader("here")), done=done.append, refuse=print)
    reading = Recognize("item_1", 1, AUDIO, None, is_partial=True, is_early=True)
    lull = reading, JudgeTurn("item_1", 1, AUDIO, is_early=True)
    with cores_in_use_are((os.cpu_count() or 1) * (0.2 if is_calm else 0.3)):
        await asyncio.gather(*(hearing.carry_out(work) for work in lull))
        assert order == ["reading", "judgement"] * is_calm
        assert TurnJudged("item_1", 1, 1.0 if is_calm else None) in done
        assert isinstance(done[0], Recognized if is_calm else RecognitionFailed)
        await hearing.carry_out(JudgeTurn("item_1", 1, AUDIO))
    assert order[-1] == "judgement"


async def test_words_are_read_for_captions_only_where_a_core_is_idle() -> None:
    done: list[Result] = []
    ear = Ear("here")
    hearing = HearingPipeline(turns=Turns(), recognizer=recognizer(ear), done=done.append, refuse=print)
    with cores_in_use_are(1000):
        await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True, is_caption=True))
        await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True))
    await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True, is_caption=True))
    assert [type(each) for each in done] == [RecognitionFailed, Recognized, Recognized]
    assert ear.asked == 2


BLOCKS = itertools.count()


@contextmanager
def cores_in_use_are(count: float) -> Iterator[None]:
    """So many, while the block lasts (a second at most), and none after it."""
    now = time.monotonic() + 10 * next(BLOCKS)  # what is noted for a later time stays
    try:
        cores_in_use.look(now + 1, 0)
        cores_in_use.look(now + 2, count)
        yield
    finally:
        cores_in_use.look(now + 3, count)


class Turns:
    async def end_probability(self, audio: Samples) -> float:
        return 1.0
