"""Which of several speech engines serves a conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
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
from voiceapp.protocol.work import JudgeTurn, RecognitionFailed, Recognize, Recognized, Result

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
    work = Recognize("item_1", 1, AUDIO, None, is_partial=True, is_early=True)
    await hearing.carry_out(work)
    assert [type(each) for each in done] == [Recognized if reads_early else RecognitionFailed]
    assert sum(ear.asked for ear in ears) == reads_early


async def test_a_lull_is_read_before_the_turn_model_takes_a_thread() -> None:
    order: list[str] = []

    class Reader(Ear):
        async def recognize(self, *args: Any, **kwargs: Any) -> Recognition:
            order.append("reading")
            return await super().recognize(*args, **kwargs)

    class Judge(Turns):
        async def end_probability(self, audio: Samples) -> float:
            order.append("judgement")
            return await super().end_probability(audio)

    hearing = HearingPipeline(turns=Judge(), recognizer=recognizer(Reader("here")), done=lambda _: None, refuse=print)
    lull = Recognize("item_1", 1, AUDIO, None, is_partial=True, is_early=True), JudgeTurn("item_1", 1, AUDIO)
    await asyncio.gather(*(hearing.carry_out(work) for work in lull))
    assert order == ["reading", "judgement"]


async def test_words_are_read_for_captions_only_where_a_core_is_idle() -> None:
    now, cpu_s = time.monotonic(), time.process_time()
    done: list[Result] = []
    ear = Ear("here")
    hearing = HearingPipeline(turns=Turns(), recognizer=recognizer(ear), done=done.append, refuse=print)
    try:
        cores_in_use.look(now + 1, cpu_s + 1000)
        await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True, is_caption=True))
        await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True))
    finally:
        cores_in_use.look(now + 2, cpu_s)
    await hearing.carry_out(Recognize("item_1", 1, AUDIO, None, is_partial=True, is_caption=True))
    assert [type(each) for each in done] == [RecognitionFailed, Recognized, Recognized]
    assert ear.asked == 2


class Turns:
    async def end_probability(self, audio: Samples) -> float:
        return 1.0
