"""Recordings of conversations: from the microphone to the file, to the page of operators and back to the engines."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import wave
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.realtime.test_admin import end
from tests.realtime.test_bridge import turn
from tests.realtime.test_models import begin
from tests.realtime.webrtc.caller import calling
from voiceapp.accounts.models import Membership
from voiceapp.engines.interfaces import Call, Samples
from voiceapp.protocol.openai_realtime.settings import session_to
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import PlayoutCut
from voiceapp.realtime.models import RealtimeSession, Recording, Turn
from voiceapp.realtime.records.recording import EVENTS, SOUND, Tape
from voiceapp.realtime.records.sound import RATE_HZ
from voiceapp.tasks.storage import files

ROOT = Path(__file__).parents[3]
SECOND = b"\x00\x20" * RATE_HZ
"""A second of the caller's sound."""


def read(path: Path) -> tuple[np.ndarray[Any, Any], list[dict[str, Any]]]:
    """The samples of both sides, and the events."""
    with zipfile.ZipFile(path) as archive:
        with wave.open(archive.open(SOUND)) as sound:
            assert sound.getparams()[:3] == (2, 2, RATE_HZ)
            samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).reshape(-1, 2)
        return samples, [json.loads(line) for line in archive.read(EVENTS).splitlines()]


# ── With the real server ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def recording_product(serve: Serve) -> Product:
    return serve(RECORDING_DAYS="7")


async def stored(product: Product, session_id: str) -> Path:
    await product.logged(f"session {session_id}: the recording is stored")
    (row,) = product.rows("select name from realtime_recording where session_id = ?", session_id)
    return Path(product.environment["VAR_DIR"], "tasks", str(row["name"]))


def replayed(product: Product, path: Path) -> tuple[int, str]:
    command = [sys.executable, "manage.py", "replay", str(path)]
    done = subprocess.run(command, env=product.environment, capture_output=True, text=True, timeout=120, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
async def test_both_sides_are_recorded_and_said_again_to_the_engines(
    recording_product: Product, voices: Callable[[str], Samples], tmp_path: Path, transport: str
) -> None:
    product, key, question = recording_product, recording_product.keys["good"], voices("What time is it?")
    if transport == "webrtc":
        async with calling(product.origin, key) as caller:
            await caller.microphone.say(question)
            await caller.wait("response.done")
            (created,) = caller.all("session.created")
    else:
        async with call(product.url, key, has_microphone=True) as talker:
            await talker.say(question)
            await talker.wait("response.done")
            (created,) = talker.all("session.created")
    assert created["session"]["recording"] is True
    assert session_to(created["session"])["recording"] is True, "in OpenAI's dialect as well"
    path = await stored(product, created["session"]["id"])
    sound, lines = read(path)
    loud = [np.flatnonzero(np.abs(sound[:, side].astype(int)) > 1000) for side in (0, 1)]
    assert loud[0][-1] < loud[1][0], "the reply begins behind the question"
    assert len(loud[0]) > RATE_HZ / 8
    assert len(loud[1]) > RATE_HZ / 8
    (told,) = [line for line in lines if line["type"] == "turn"]
    assert told["user_text"] == "What time is it?"
    times = [line["at"] for line in lines]
    assert times == sorted(times)

    code, shown = replayed(product, path)
    assert code == 0, shown
    assert "1 turns before, 1 now; 0 differ." in shown

    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(changed, "w") as other:
        other.writestr(SOUND, archive.read(SOUND))
        other.writestr(EVENTS, archive.read(EVENTS).replace(b"What time is it?", b"What day is it?"))
    code, shown = replayed(product, changed)
    assert code == 1
    assert "≠ turn 1" in shown
    assert "What day is it?" in shown


async def test_nothing_is_recorded_unless_an_operator_wants_it(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("Hello!")
        await talker.wait("response.done")
        created = talker.all("session.created")[0]["session"]
    assert "recording" not in created
    await product.row("select id from realtime_realtimesession where id = ? and ended_at is not null", created["id"])
    assert product.rows("select id from realtime_recording where session_id = ?", created["id"]) == []


def test_another_file_is_refused_in_a_sentence(recording_product: Product, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    other.write_bytes(b"PK not a zip")
    for path, words in ((other, "is not the recording of a conversation."), (tmp_path / "none.zip", "cannot be read")):
        code, shown = replayed(recording_product, path)
        assert code == 1
        assert words in shown
        assert "Traceback" not in shown


# ── One tape ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def storage(settings: Settings, tmp_path: Path) -> Path:
    settings.RECORDING_DAYS = 7
    settings.STORAGES = {
        **settings.STORAGES,
        "tasks": {**settings.STORAGES["tasks"], "OPTIONS": {"location": tmp_path}},
    }
    return tmp_path


def zips(storage: Path) -> list[Path]:
    return list(storage.rglob("*.zip"))


async def recorded(session: RealtimeSession, *events: Any) -> Recording | None:
    tape = Tape(session.pk)
    running = asyncio.create_task(tape.run(Call(session.pk, "voice")))
    await asyncio.sleep(0)
    for event in events:
        tape.add(event)
    await asyncio.sleep(0.05)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    tape.stop()
    await tape.keep()
    return await Recording.objects.filter(session=session).afirst()


@pytest.fixture
def session(transactional_db: None, alice: Member) -> RealtimeSession:
    return begin(alice)


async def test_what_was_not_heard_and_what_is_secret_is_left_out(session: RealtimeSession, storage: Path) -> None:
    where: dict[str, Any] = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
    now = asyncio.get_running_loop().time()
    tool = {"type": "mcp", "server_label": "wiki", "authorization": "hush", "headers": {"X": "hush"}}
    row = await recorded(
        session,
        ev.SessionUpdate(session={"tools": [tool], "instructions": "Be brief."}),
        ev.AudioDelta(**where, audio=b"\x00\x20" * 24_000, heard_from=now),
        PlayoutCut(),
        turn(),
        ev.ItemCreate(item={"type": "message", "content": "x" * 100_000}),
    )
    assert row is not None
    sound, lines = read(storage / row.name)
    (told,) = [line for line in lines if line["type"] == "turn"]
    assert np.count_nonzero(sound[:, 1]) <= (told["at"] + 0.001) * RATE_HZ, "the rest was cut before it was heard"
    text = json.dumps(lines)
    assert "Be brief." in text
    assert "hush" not in text
    assert [line["type"] for line in lines] == ["call", "session.update", "turn", "conversation.item.create"]
    assert lines[-1]["left_out"] > 100_000


@pytest.mark.parametrize(
    ("changes", "is_kept", "words"),
    [
        ({}, True, None),
        ({"RECORDING_MAX_S": 0.01}, True, "the recording ends, and the conversation goes on"),
        ({"DISK_RESERVE_BYTES": 2**60}, False, "the recording ends, and the conversation goes on"),
        ({"RECORDINGS_MAX_BYTES": 100}, False, "RECORDINGS_MAX_BYTES are used up"),
    ],
)
async def test_it_keeps_to_its_limits(
    session: RealtimeSession,
    storage: Path,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    changes: dict[str, Any],
    is_kept: bool,
    words: str | None,
) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)
    row = await recorded(session, ev.AudioAppend(audio=SECOND))
    assert (row is not None) is is_kept
    assert len(zips(storage)) == is_kept
    assert (words or "session") in caplog.text or words is None
    if row is not None:
        assert row.is_cut is bool(changes)
        assert (row.sound_bytes == 4 * RATE_HZ * 0.01) is bool(changes)


# ── The page of a conversation ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def kept(session: RealtimeSession, storage: Path) -> Recording:
    row = asyncio.run(recorded(session, ev.AudioAppend(audio=SECOND)))
    assert row is not None
    Turn.objects.create(
        session=session, ordinal=1, status="completed", user_text="Hi", assistant_text="Hello.", first_audio_ms=300
    )
    end(session)
    return row


def address(row: Recording, form: str) -> str:
    return reverse("admin:realtime_recording", args=[quote(row.session_id), form])


def content(response: Any) -> bytes:
    async def whole() -> bytes:
        return b"".join([piece async for piece in response])

    return asyncio.run(whole())


def test_an_operator_hears_it_and_takes_it_away_which_the_audit_says_once(
    desk: Client, operator: User, kept: Recording
) -> None:
    page = desk.get(reverse("admin:realtime_realtimesession_change", args=[quote(kept.session_id)])).content.decode()
    assert 'class="of-caller" d="M' in page
    assert f'src="{address(kept, "wav")}" preload="none" data-length="{kept.sound_bytes / (4 * RATE_HZ)}"' in page
    assert "<b>Assistant</b> Hello." in page
    whole = content(desk.get(address(kept, "zip")))
    assert len(whole) == kept.size
    sound = content(desk.get(address(kept, "wav")))
    assert len(sound) == kept.sound_bytes + 44
    part = desk.get(address(kept, "wav"), headers={"Range": "bytes=40-99"})
    assert (part.status_code, content(part)) == (206, sound[40:100])
    assert desk.get(address(kept, "exe")).status_code == 404
    told = LogEntry.objects.filter(change_message="Fetched the recording.").values_list("user", "object_id")
    assert list(told) == [(operator.pk, kept.session_id)]
    other = Client()
    other.force_login(User.objects.create_superuser("other"))
    content(other.get(address(kept, "wav")))
    assert told.all().count() == 2


def test_it_takes_a_permission_of_its_own(kept: Recording, alice: Member, charlie: Member) -> None:
    clerk, client = User.objects.create_user("clerk", is_staff=True), Client()
    membership = Membership.objects.create(user=clerk, account=alice.account)
    clerk.user_permissions.add(Permission.objects.get(codename="view_realtimesession"))
    client.force_login(clerk)
    page = reverse("admin:realtime_realtimesession_change", args=[quote(kept.session_id)])
    shown = client.get(page).content.decode()
    assert kept.session_id in shown
    assert address(kept, "wav") not in shown
    assert client.get(address(kept, "wav")).status_code == 403
    clerk.user_permissions.add(Permission.objects.get(codename="view_recording"))
    assert address(kept, "wav") in client.get(page).content.decode()
    assert client.get(address(kept, "wav")).status_code == 200
    membership.account = charlie.account
    membership.save()
    assert client.get(address(kept, "wav")).status_code == 404


@pytest.mark.parametrize("how", ["on the page", "in the list", "purge", "nothing"])
def test_it_goes_with_its_conversation_or_after_its_days(
    desk: Client, kept: Recording, storage: Path, how: str
) -> None:
    if how == "on the page":
        desk.post(reverse("admin:realtime_realtimesession_delete", args=[quote(kept.session_id)]), {"post": "yes"})
    elif how == "in the list":
        chosen = {"action": "delete_selected", "_selected_action": kept.session_id, "post": "yes"}
        desk.post(reverse("admin:realtime_realtimesession_changelist"), chosen)
    else:
        days = 8 if how == "purge" else 6
        Recording.objects.update(began_at=timezone.now() - timedelta(days=days))
        call_command("purge")
    is_left = how == "nothing"
    assert files.storage().exists(kept.name) is is_left
    assert Recording.objects.exists() is is_left
    assert RealtimeSession.objects.exists() is (how in ("purge", "nothing"))
