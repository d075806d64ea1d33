"""A recorded conversation said again to the engines of today, in the time of the recording.

The event loop's time jumps over what nothing works on: the caller's silence, and speech that is being played. While an
engine works it passes as it does, so latencies are those of this machine.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import wave
import zipfile
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from voiceapp.engines.cascade import CascadeModel, CascadeStream
from voiceapp.engines.interfaces import VAD_FRAME_SAMPLES, Briefing, Call
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import Pcm
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import TurnEnded
from voiceapp.realtime.records.recording import EVENTS, REPLAYED, SOUND
from voiceapp.realtime.records.sound import RATE_HZ

FORMATS = ("input_audio_format", "sample_rate")
NAMED = (ev.ItemRetrieve, ev.ItemDelete, ev.ItemTruncate)
"""Events that name an item of the recorded session: the replay's have other names."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The content of a recording."""

    opening: dict[str, Any]
    caller: Pcm
    events: list[tuple[float, ev.ClientEvent]]
    """Time in seconds, and what the client sent beside sound."""
    turns: list[dict[str, Any]]
    """`TurnEnded` of each turn, as it was told last."""

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Read a file that a conversation's page offers.

        Raises:
            InvalidParameter: if it is not such a file.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                lines = [json.loads(line) for line in archive.read(EVENTS).splitlines()]
                with wave.open(archive.open(SOUND)) as sound:
                    pcm = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).reshape(-1, 2)
                    if sound.getparams()[:3] != (2, 2, RATE_HZ):
                        raise ValueError(SOUND)
            opening = {name: lines[0][name] for name in REPLAYED}
            events = [
                (line["at"], ev.CLIENT_EVENTS[line["type"]](**line["fields"]))
                for line in lines
                if line["from"] == "caller" and "fields" in line
            ]
            turns = {line["ordinal"]: line for line in lines if line["type"] == "turn"}
            return cls(opening, pcm[:, 0].copy(), events, list(turns.values()))
        except OSError as error:
            raise InvalidParameter(f"{path} cannot be read: {error.strerror or error}.") from error
        except (zipfile.BadZipFile, wave.Error, EOFError, KeyError, IndexError, TypeError, ValueError) as error:
            raise InvalidParameter(f"{path} is not the recording of a conversation.") from error

    def call(self) -> Call:
        given = {**self.opening, "usual": _without_formats(self.opening["usual"])}
        given |= {"opening": _without_formats(given["opening"]), "fixed": frozenset(given["fixed"])}
        given |= {"languages": tuple(given["languages"]), "tools": given["tools"] and tuple(given["tools"])}
        return Call("sess_replay", **{**given, "briefing": Briefing(**given["briefing"])})

    def inputs(self) -> list[tuple[float, ev.ClientEvent]]:
        """Return everything the caller sent, by time: sound in frames of 16 kHz."""
        frames = (self.caller[at : at + VAD_FRAME_SAMPLES] for at in range(0, len(self.caller), VAD_FRAME_SAMPLES))
        sound = (
            ((place + 1) * VAD_FRAME_SAMPLES / RATE_HZ, ev.AudioAppend(audio=frame.tobytes()))
            for place, frame in enumerate(frames)
        )
        others = ((at, _replayable(event)) for at, event in self.events if not isinstance(event, NAMED))
        return sorted(chain(sound, others), key=lambda each: each[0])


class Pair(NamedTuple):
    """A turn of the recording and that of the replay; None where one of them has it alone."""

    before: dict[str, Any] | None
    now: dict[str, Any] | None

    @property
    def differs(self) -> bool:
        """The caller was understood otherwise."""
        return self.before is None or self.now is None or self.before["user_text"] != self.now["user_text"]


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer whenever `may_jump`."""

    may_jump: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(self) -> None:
        self._ahead_s = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return super().time() + self._ahead_s

    def jump(self, seconds: float) -> None:
        self._ahead_s += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not timeout or not self._clock.may_jump():
            return super().select(timeout)
        if found := super().select(0):
            return found
        self._clock.jump(timeout)
        return []


async def replay(recorded: Recorded, clock: Clock) -> list[TurnEnded]:
    """Return the turns that the recording comes to now; `clock` is the running event loop.

    Raises:
        EngineUnavailable: if an engine cannot serve now.
    """
    model = CascadeModel()
    model.check()
    turns: dict[int, TurnEnded] = {}
    is_fed = False

    async def collect(stream: CascadeStream) -> None:
        async with aclosing(stream.events()) as events:
            async for event in events:
                if isinstance(event, TurnEnded):
                    turns[event.ordinal] = event

    async with asyncio.TaskGroup() as tasks:
        stream = model.open(recorded.call(), tasks)
        collecting = tasks.create_task(collect(stream), name="events of the replay")
        clock.may_jump = lambda: not is_fed and not stream.is_working
        begun = clock.time()
        for at, event in recorded.inputs():
            await asyncio.sleep(begun + at - clock.time())
            is_fed = True
            await stream.receive(event)
            is_fed = False
        await stream.wait_idle()
        clock.may_jump = lambda: False
        turns |= {turn.ordinal: turn for turn in stream.close()}
        collecting.cancel()
    return [turns[ordinal] for ordinal in sorted(turns)]


def compared(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[Pair]:
    """Pair the turns of both sides by what the caller said."""
    pairs: list[Pair] = []
    said, heard = ([turn["user_text"] for turn in side] for side in (before, now))
    for _, a, b, c, d in SequenceMatcher(a=said, b=heard, autojunk=False).get_opcodes():
        for place in range(max(b - a, d - c)):
            old, new = (turns[:end][start + place :][:1] for turns, start, end in ((before, a, b), (now, c, d)))
            pairs.append(Pair(old[0] if old else None, new[0] if new else None))
    return pairs


def _replayable(event: ev.ClientEvent) -> ev.ClientEvent:
    if isinstance(event, ev.SessionUpdate):
        return ev.SessionUpdate(session=_without_formats(event.session), event_id=event.event_id)
    return ev.ResponseCancel() if isinstance(event, ev.ResponseCancel) else event


def _without_formats(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without the format of the caller's sound, which is recorded at 16 kHz."""
    kept = {name: value for name, value in settings.items() if name not in FORMATS}
    audio = kept.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("input"), dict):
        source = {name: value for name, value in audio["input"].items() if name != "format"}
        kept["audio"] = {**audio, "input": source}
    return kept
