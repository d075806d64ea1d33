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
from contextlib import ExitStack
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
from voiceapp.engines.interfaces import Call
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut, TurnEnded
from voiceapp.realtime.models import RealtimeSession, Recording
from voiceapp.realtime.records.listening import OperatorListener
from voiceapp.realtime.records.sound import RATE_HZ, SETTLED_S, BothSides, Passed
from voiceapp.tasks.storage import files
from voiceapp.tasks.storage.scratch import Scratch

logger = logging.getLogger(__name__)

SOUND, EVENTS = "conversation.wav", "events.jsonl"
"""The files in the zip: the caller is on the left channel."""
PERIOD_S = 1.0
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


@cache
def _disk() -> tuple[ThreadPoolExecutor, Scratch]:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="recording"), Scratch()


@dataclass
class _Bundle:
    """The files of a recording while it is made. Used on the thread of the disk only."""

    sides: BothSides
    folders: ExitStack = field(default_factory=ExitStack)
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
            self.sides.add(at, event)
            self._note_event(at - self.sides.begun, event)
        most = int(settings.RECORDING_MAX_S * RATE_HZ)
        count = min(self.sides.count(until), max(0, most - self.sides.samples))
        disks().require_room_in_progress(4 * count)
        self.sound.writeframesraw(self.sides.take(count))
        return self.sides.is_ahead or self.sides.samples >= most or self.event_bytes > MOST_EVENTS_BYTES

    def _note_event(self, at: float, event: Passed) -> None:
        match event:
            case ev.AudioAppend() | ev.AudioDelta() | PlayoutCut():
                pass
            case TurnEnded():
                self._note({"at": at, "from": "server", "type": "turn", **asdict(event)})
            case ev.ClientEvent():
                fields = _without_secrets(asdict(event))
                self._note({"at": at, "from": "caller", "type": event.type, "fields": fields})
            case ev.ServerEvent():
                self._note({"at": at, "from": "server", **event.to_wire()})

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
    """Takes what passes in one conversation: records it where that is wanted, and hands it to those who listen in."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._waiting: list[tuple[float, Passed]] = []
        self._waiting_bytes = 0
        self._bundle: _Bundle | None = None
        self._began_at = timezone.now()
        self._is_over = False
        """It has come to a limit; what was recorded is kept."""
        self.listeners: set[OperatorListener] = set()
        self.session: dict[str, Any] = {}
        """The session as the caller was told last."""

    @property
    def is_on(self) -> bool:
        return self._bundle is not None

    def told(self, event: ev.ServerEvent) -> ev.ServerEvent:
        """Return the event that tells the caller of the session, with notices that it is recorded and listened to."""
        if not isinstance(event, ev.SessionCreated | ev.SessionUpdated):
            return event
        self.session = event.session
        notices = {"recording": self.is_on, "operator_listening": bool(self.listeners)}
        return replace(event, session={**event.session, **{name: True for name, is_so in notices.items() if is_so}})

    def add(self, event: Passed) -> None:
        for listener in self.listeners:
            listener.add(event)
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
        self._bundle = _Bundle(BothSides(_clock(), call.input_rate_hz))
        await self._try(partial(self._bundle.open, _opening(call)))
        while not self._is_over:
            await asyncio.sleep(PERIOD_S)
            await self._write(self._bundle, _clock() - SETTLED_S)

    def stop(self) -> None:
        """The conversation is over now."""
        self._ended = _clock()
        for listener in self.listeners:
            listener.end()

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
            found = await self._try(bundle.closed) if bundle.sides.samples else None
            if found is not None:
                path, peaks = found
                row = await run_in_records_thread(self._note, 4 * bundle.sides.samples, peaks, path.stat().st_size)
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
