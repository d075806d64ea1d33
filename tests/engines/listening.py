"""A session that listens with the real engines, in the time of the sound itself: nothing waits and nothing is late."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from tests.engines.speech import silence
from voiceapp.engines.embedded.asr import Moonshine
from voiceapp.engines.embedded.turn import SmartTurn
from voiceapp.engines.embedded.vad import SileroDetector
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, VAD_FRAME_SAMPLES, Recognizer, Samples
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.session import Session
from voiceapp.protocol.wire.events import ServerEvent
from voiceapp.protocol.work import JudgeTurn, Recognize, Recognized, TurnJudged

FRAME_S = VAD_FRAME_SAMPLES / ENGINE_SAMPLE_RATE_HZ
LOUDNESS = 0.0005
"""Of the room: no microphone is silent."""

Event = dict[str, Any]


async def listen(sound: Samples, *, recognizer: Recognizer | None = None, captions: bool = True) -> list[Event]:
    """The events of a session that hears a sound, with silence before and after it."""
    heard = np.concatenate([silence(0.6), sound, silence(1.5)])
    heard = (heard + np.random.default_rng(1).normal(0, LOUDNESS, len(heard))).astype(np.float32)
    session = Session(session_id="sess_1", config=SessionConfig("voice", "en-us", captions=captions))
    detector, recognizer, turns = SileroDetector(), recognizer or Moonshine(), SmartTurn()
    now = 0.0
    session.open(now)
    for start in range(0, len(heard) - VAD_FRAME_SAMPLES + 1, VAD_FRAME_SAMPLES):
        now += FRAME_S
        frame = heard[start : start + VAD_FRAME_SAMPLES]
        session.hear(frame, detector.probability(frame), now)
        while pending := session.work_to_start():
            for work in pending:
                if isinstance(work, Recognize):
                    found = await recognizer.recognize(work.audio)
                    session.done(Recognized(work, found.text, found.confidence), now)
                elif isinstance(work, JudgeTurn):
                    probability = await turns.end_probability(work.audio)
                    session.done(TurnJudged(work.item_id, work.version, probability), now)
        await asyncio.sleep(0)
    return [event.to_wire() for event in session.events_to_send() if isinstance(event, ServerEvent)]


def transcripts(events: list[Event]) -> list[str]:
    """The final words of each turn; empty where nothing was understood."""
    return [event["transcript"] for event in of(events, "conversation.item.input_audio_transcription.completed")]


def of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]
