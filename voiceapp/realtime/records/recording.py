"""The recording of a conversation: the sound of both sides and the events, as one zip file.

The bridge hands over what passes, whatever the transport. Sound is converted and written once a second, on a thread for
that; a recording that cannot be written ends, and the conversation goes on without it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import wave
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from voiceapp.database.thread import DatabaseUnavailable, run_in_records_thread
from voiceapp.disk import DiskFull, disks
from voiceapp.engines.interfaces import ENGINE_SAMPLE_RATE_HZ, Call
from voiceapp.engines.sound.resampling import InputConverter
from voiceapp.errors import InvalidParameter
from voiceapp.protocol.audio import AudioFormat, Pcm, to_pcm16
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, TurnEnded
from voiceapp.realtime.models import RealtimeSession, Recording
from voiceapp.tasks.storage import files
from voiceapp.tasks.storage.scratch import Scratch

logger = logging.getLogger(__name__)

SOUND, EVENTS = "conversation.wav", "events.jsonl"
"""The files in the zip: the caller is on the left channel."""
RATE_HZ = ENGINE_SAMPLE_RATE_HZ
PERIOD_S = 1.0
SETTLED_S = 0.5
"""Age at which sound is written: a cut of playout reaches back no further."""
GAP_S = 0.2
"""Delay of arriving sound that is taken for silence, and not for jitter."""
MOST_AHEAD_S = 60
"""Sound that came sooner than it can be heard; a client may send twice as fast as it is spoken."""
MOST_WAITING_BYTES = 4 * 1024**2
"""Sound that waits for a slow disk."""
MOST_EVENTS_BYTES = 32 * 1024**2
MOST_LINE_BYTES = 64 * 1024
"""A longer event, such as one with a picture, is named and left out."""
PEAKS = 400
REPLAYED = (
    *("model", "time_zone", "languages", "first_words", "pace", "tools", "usual", "opening", "listens_only"),
    *("fixed", "briefing"),
)
"""Fields of the call that a replay is opened with."""
SECRETS = frozenset({"authorization", "headers"})

Passed = ev.ClientEvent | ev.ServerEvent | PlayoutCut | TurnEnded


@cache
def _disk() -> tuple[ThreadPoolExecutor, Scratch]:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="recording"), Scratch()


class _Side:
    """The sound of one side that is not written yet."""

    def __init__(self, rate_hz: int) -> None:
        self.read(AudioFormat("pcm16", rate_hz))
        self._waiting: Pcm = np.zeros(0, np.int16)

    def read(self, audio_format: AudioFormat) -> None:
        self._converter = InputConverter(audio_format)

    def add(self, audio: bytes, *, begins: int | None = None, ends: int = 0) -> None:
        """Add sound that begins or ends at a sample, counted from the first that is not written; behind the last."""
        try:
            samples = np.frombuffer(to_pcm16(self._converter.convert(audio)), np.int16)
        except InvalidParameter:  # the session tells the client
            return
        silence = (ends - len(samples) if begins is None else begins) - len(self._waiting)
        if silence < GAP_S * RATE_HZ:
            silence = 0
        self._waiting = np.concatenate((self._waiting, np.zeros(silence, np.int16), samples))

    def cut(self, at: int) -> None:
        self._waiting = self._waiting[: max(0, at)]

    def take(self, count: int) -> Pcm:
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return np.pad(taken, (0, count - len(taken)))

    def __len__(self) -> int:
        return len(self._waiting)


@dataclass
class _Bundle:
    """The files of a recording while it is made. Used on the thread of the disk only."""

    begun: float
    """Time of the first sample, on the clock of the event loop."""
    caller: _Side
    folders: ExitStack = field(default_factory=ExitStack)
    reply: _Side = field(default_factory=lambda: _Side(24_000))
    samples: int = 0
    """Written so far."""
    event_bytes: int = 0

    def open(self, opening: dict[str, Any]) -> None:
        self.folder = self.folders.enter_context(_disk()[1].folder())
        self.sound = self.folders.enter_context(wave.Wave_write(str(self.folder / SOUND)))
        self.sound.setparams((2, 2, RATE_HZ, 0, "NONE", ""))
        self.events = self.folders.enter_context((self.folder / EVENTS).open("w"))
        self._note({"at": 0.0, "from": "server", "type": "call", **opening})

    def write(self, passed: list[tuple[float, Passed]], until: float) -> bool:
        """Write what passed, and the sound before `until`; true once the recording has come to one of its limits.

        Raises:
            DiskFull: if too little disk space is free.
            OSError: if it cannot be written.
        """
        for at, event in passed:
            self._add(at, event)
        most = int(settings.RECORDING_MAX_S * RATE_HZ)
        self._write_sound(min(int((until - self.begun) * RATE_HZ), most))
        is_ahead = max(len(self.caller), len(self.reply)) > MOST_AHEAD_S * RATE_HZ
        return is_ahead or self.samples >= most or self.event_bytes > MOST_EVENTS_BYTES

    def _write_sound(self, until: int) -> None:
        count = max(0, until - self.samples)
        disks().require_room_in_progress(4 * count)
        self.sound.writeframesraw(np.stack((self.caller.take(count), self.reply.take(count)), axis=1).tobytes())
        self.samples += count

    def _add(self, at: float, event: Passed) -> None:
        here = int((at - self.begun) * RATE_HZ) - self.samples
        match event:
            case ev.AudioAppend():
                self.caller.add(event.audio, ends=here)
            case ev.AudioDelta():
                lead = 0 if event.heard_from is None else int((event.heard_from - at) * RATE_HZ)
                self.reply.add(event.audio, begins=here + lead)
            case PlayoutCut():
                self.reply.cut(here)
            case TurnEnded():
                self._note({"at": at - self.begun, "from": "server", "type": "turn", **asdict(event)})
            case ev.ClientEvent():
                fields = _without_secrets(asdict(event))
                self._note({"at": at - self.begun, "from": "caller", "type": event.type, "fields": fields})
            case ev.ServerEvent():
                if isinstance(event, ev.SessionCreated | ev.SessionUpdated):
                    self._read_formats(event.session)
                self._note({"at": at - self.begun, "from": "server", **event.to_wire()})

    def _read_formats(self, session: dict[str, Any]) -> None:
        for side, name in ((self.caller, "input"), (self.reply, "output")):
            with suppress(KeyError, TypeError):  # another service may tell less
                stated = session["audio"][name]["format"]
                side.read(AudioFormat(stated["type"], stated["sample_rate"]))

    def _note(self, line: dict[str, Any]) -> None:
        text = json.dumps({**line, "at": round(line["at"], 3)})
        if len(text) > MOST_LINE_BYTES:
            text = json.dumps({"at": line["at"], "from": line["from"], "type": line["type"], "left_out": len(text)})
        self.event_bytes += self.events.write(f"{text}\n")

    def closed(self) -> tuple[Path, list[list[int]]]:
        """Return the zip file, and the peaks of its sound.

        Raises:
            OSError: if it cannot be written.
        """
        self.sound.close()
        self.events.close()
        target = self.folder / "recording.zip"
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.folder / SOUND, SOUND, zipfile.ZIP_STORED)  # so that a player may begin anywhere
            archive.write(self.folder / EVENTS, EVENTS)
        sound = np.memmap(self.folder / SOUND, np.int16, "r", offset=44).reshape(-1, 2)
        parts = np.linspace(0, len(sound), PEAKS + 1).astype(int)[:-1]
        loud = [
            [int(np.abs(part[:, side].astype(int)).max(initial=0)) for part in np.split(sound, parts[1:])]
            for side in (0, 1)
        ]
        return target, [[round(peak / 327.68) for peak in side] for side in loud]


class Tape:
    """Records one conversation; until `run`, and where nothing is recorded, it takes everything and keeps nothing."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._waiting: list[tuple[float, Passed]] = []
        self._waiting_bytes = 0
        self._bundle: _Bundle | None = None
        self._began_at = timezone.now()
        self._is_over = False
        """It has come to a limit; what was recorded is kept."""

    @property
    def is_on(self) -> bool:
        return self._bundle is not None

    def told(self, event: ev.ServerEvent) -> ev.ServerEvent:
        """Return the event that tells the caller of the session, with the notice that it is recorded."""
        if self.is_on and isinstance(event, ev.SessionCreated | ev.SessionUpdated):
            return replace(event, session={**event.session, "recording": True})
        return event

    def add(self, event: Passed) -> None:
        if self._bundle is None or self._is_over:
            return
        self._waiting.append((_clock(), event))
        if isinstance(event, ev.AudioAppend | ev.AudioDelta):
            self._waiting_bytes += len(event.audio)
            if self._waiting_bytes > MOST_WAITING_BYTES:
                self._end("the disk is too slow")

    async def run(self, call: Call) -> None:
        """Write once a second, until cancelled or over."""
        if not settings.RECORDING_DAYS or call.is_forwarded:
            return
        self._began_at = timezone.now()
        self._bundle = _Bundle(_clock(), _Side(call.input_rate_hz))
        await self._try(partial(self._bundle.open, _opening(call)))
        while not self._is_over:
            await asyncio.sleep(PERIOD_S)
            await self._write(self._bundle, _clock() - SETTLED_S)

    def stop(self) -> None:
        """The conversation is over now."""
        self._ended = _clock()

    async def _write(self, bundle: _Bundle, until: float) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if await self._try(partial(bundle.write, waiting, until)):
            self._end("it has come to its limit")

    async def _try(self, work: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(_disk()[0], work)
        except (OSError, DiskFull) as error:
            self._end(str(error))
            return None

    def _end(self, reason: str) -> None:
        if not self._is_over:
            logger.warning("session %s: the recording ends, and the conversation goes on: %s", self._session_id, reason)
        self._is_over = True

    async def keep(self) -> None:
        """Put the recording into the storage, after the end of its conversation was written."""
        bundle = self._bundle
        assert bundle is not None
        if not self._is_over:
            await self._write(bundle, self._ended)
        try:
            found = await self._try(bundle.closed) if bundle.samples else None
            if found is not None:
                path, peaks = found
                row = await run_in_records_thread(self._note, 4 * bundle.samples, peaks, path.stat().st_size)
                if row is not None:
                    await self._store(row, path)
        except (DatabaseFailure, DatabaseUnavailable) as error:
            logger.error("session %s: the recording is lost: %s", self._session_id, error)
        finally:
            await self._try(bundle.folders.close)

    async def _store(self, row: Recording, path: Path) -> None:
        try:
            await files.at_the_storage(partial(files.put, path, row.name))
        except Exception:  # a bucket fails in its own ways
            logger.exception("session %s: the recording could not be stored", self._session_id)
            await run_in_records_thread(row.delete)
        else:
            logger.info("session %s: the recording is stored", self._session_id)

    def _note(self, sound_bytes: int, peaks: list[list[int]], size: int) -> Recording | None:
        with transaction.atomic():
            kept = Recording.objects.aggregate(size=Sum("size"))["size"] or 0
            if kept + size > settings.RECORDINGS_MAX_BYTES:
                logger.warning(
                    "session %s: not kept, RECORDINGS_MAX_BYTES are used up by other recordings", self._session_id
                )
                return None
            session = RealtimeSession.objects.filter(pk=self._session_id).first()
            if session is None:  # deleted meanwhile
                return None
            row: Recording = Recording.objects.create(
                session=session,
                name=f"recordings/{self._session_id}/{secrets.token_hex(4)}.zip",
                size=size,
                began_at=self._began_at,
                sound_bytes=sound_bytes,
                peaks=peaks,
                is_cut=self._is_over,
            )
            return row


def opened(row: Recording, part: str, start: int) -> IO[bytes]:
    """Open a stored recording, or with a `part` one file of it, at byte `start`.

    Raises:
        NotFound: if it is gone.
    """
    source: IO[bytes] = files.opened(row.name, 0 if part else start)
    if not part:
        return source
    inside = zipfile.ZipFile(source).open(part)  # noqa: SIM115 - the caller closes it
    inside.seek(start)
    return inside


def purge_recordings(now: datetime) -> int:
    """Delete recordings of conversations that were deleted, and those older than RECORDING_DAYS."""
    deletions, deleted = files.Deletions(), 0
    past = Recording.objects.filter(began_at__lt=now - timedelta(days=settings.RECORDING_DAYS))
    for row in (past | Recording.objects.filter(session=None)).iterator():
        if deletions.delete(row.name):  # first: a file without a row would never be found again
            row.delete()
            deleted += 1
    deletions.log()
    return deleted


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _opening(call: Call) -> dict[str, Any]:
    return {
        "session_id": call.session_id,
        **{name: getattr(call, name) for name in REPLAYED},
        "fixed": sorted(call.fixed),
        "briefing": asdict(call.briefing),
    }


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        is_server = value.get("type") == "mcp"
        return {name: _without_secrets(each) for name, each in value.items() if not (is_server and name in SECRETS)}
    return [_without_secrets(each) for each in value] if isinstance(value, list) else value
