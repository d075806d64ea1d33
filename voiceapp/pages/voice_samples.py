"""Samples of the voices: a sentence in the voice's own language, spoken once and kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import aclosing
from functools import cache

from voiceapp.engines.interfaces import Synthesizer, Voice
from voiceapp.engines.models.fallback import ConversationSynthesizer
from voiceapp.engines.models.providers import links_in_use
from voiceapp.engines.sound.sound_files import SoundWriter
from voiceapp.errors import NotFound

FORMAT, MEDIA_TYPE = "mp3", "audio/mpeg"
SAMPLE_RATE_HZ = 24_000
MOST_KEPT = 64
"""Samples, of about 20 kB each."""
SENTENCES = {
    "ar": "مرحبا! هكذا يبدو صوتي.",
    "de": "Guten Tag! So klinge ich, wenn ich spreche.",
    "el": "Γεια σας! Έτσι ακούγεται η φωνή μου.",
    "en": "Hello! This is what I sound like when I talk.",
    "es": "¡Hola! Así sueno cuando hablo.",
    "fr": "Bonjour ! Voici comment je parle.",
    "he": "שלום! כך נשמע הקול שלי.",
    "hi": "नमस्ते! मेरी आवाज़ ऐसी है।",
    "it": "Buongiorno! Ecco come parlo.",
    "ja": "こんにちは。これがわたしのこえです。",
    "ko": "안녕하세요! 제 목소리는 이렇습니다.",
    "nl": "Hallo! Zo klink ik als ik praat.",
    "pl": "Dzień dobry! Tak brzmi mój głos.",
    "pt": "Olá! É assim que eu falo.",
    "ru": "Здравствуйте! Так звучит мой голос.",
    "sv": "Hej! Så här låter jag när jag talar.",
    "tr": "Merhaba! Sesim böyle geliyor.",
    "uk": "Добрий день! Так звучить мій голос.",
    "zh": "你好！这就是我的声音。",
}


class VoiceSamples:
    """Samples of all voices; made one after the other, so that a flood of requests costs one voice."""

    def __init__(self, synthesizer: Synthesizer) -> None:
        self._synthesizer = synthesizer
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._turn = asyncio.Lock()

    async def get(self, name: str) -> bytes:
        """A file in MP3.

        Raises:
            NotFound: there is no such voice.
            EngineError: the voice cannot speak now.
        """
        voice = next((voice for voice in self._synthesizer.voices if voice.name == name), None)
        if voice is None:
            raise NotFound("There is no such voice.")
        async with self._turn:
            if name not in self._kept:
                self._kept[name] = await self._spoken(voice)
            self._kept.move_to_end(name)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return self._kept[name]

    async def _spoken(self, voice: Voice) -> bytes:
        text = SENTENCES.get(voice.language.split("-")[0], SENTENCES["en"])
        writer, found = SoundWriter(FORMAT, SAMPLE_RATE_HZ), b""
        async with aclosing(self._synthesizer.speak(text, voice=voice.name, sample_rate_hz=SAMPLE_RATE_HZ)) as sound:
            async for pcm in sound:
                found += writer.feed(pcm)
        return found + writer.finish()


@cache
def voice_samples() -> VoiceSamples:
    return VoiceSamples(ConversationSynthesizer(links_in_use("tts"), session_id="samples of voices"))
