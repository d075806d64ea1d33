"""Sessions that read text aloud, with the vendor's own class and with what no library sends."""

from __future__ import annotations

import base64
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dashscope
import pytest
from dashscope.audio.qwen_tts_realtime import QwenTtsRealtime, QwenTtsRealtimeCallback
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.realtime.product import Product

PATIENCE_S = 30.0
TEXT = "Good morning. The library opens at nine o'clock."
MODEL = "qwen3-tts-flash-realtime"


@pytest.fixture
def product(product: Product, monkeypatch: pytest.MonkeyPatch) -> Product:
    monkeypatch.setattr(dashscope, "api_key", product.keys["good"])
    return product


class Ears(QwenTtsRealtimeCallback):
    """What the library calls back with."""

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.closed = threading.Event()
        self.close_code: int | None = None

    def on_event(self, message: Any) -> None:
        self.events.put(message)

    def on_close(self, close_status_code: int | None, close_msg: str | None) -> None:
        self.close_code = close_status_code
        self.closed.set()

    def wait(self, type_: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] != type_:
            found.append(self.events.get(timeout=PATIENCE_S))
        return found


def sound_s(events: list[dict[str, Any]], rate_hz: int = 24_000) -> float:
    deltas = (event["delta"] for event in events if event["type"] == "response.audio.delta")
    return sum(len(base64.b64decode(delta)) for delta in deltas) / 2 / rate_hz


@contextmanager
def opened(product: Product, model: str = MODEL, key: str = "good") -> Iterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {product.keys[key]}"}
    with connect(f"{product.url}?model={model}", additional_headers=headers, open_timeout=PATIENCE_S) as socket:
        yield socket


def heard(socket: ClientConnection, type_: str) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = json.loads(socket.recv(timeout=PATIENCE_S))
        if event["type"] == type_:
            return event


def tell(socket: ClientConnection, kind: str, **fields: Any) -> None:
    socket.send(json.dumps({"type": kind, "event_id": "mine", **fields}))


class TestLibrary:
    def test_text_is_read_as_it_comes(self, product: Product) -> None:
        ears = Ears()
        reader = QwenTtsRealtime(model=MODEL, callback=ears, url=product.url)
        reader.connect()
        reader.update_session(voice="Cherry")
        (_, shown) = ears.wait("session.updated")
        for piece in (TEXT[:8], TEXT[8:20], TEXT[20:]):
            reader.append_text(piece)
        reader.finish()
        events = ears.wait("session.finished")

        assert shown["session"]["voice"] == "Cherry"
        assert (shown["session"]["mode"], shown["session"]["sample_rate"]) == ("server_commit", 24_000)
        (done,) = (event["response"] for event in events if event["type"] == "response.done")
        assert (done["status"], done["usage"]["characters"]) == ("completed", len(TEXT))
        assert 1 < sound_s(events) < 10
        assert reader.get_first_audio_delay() is not None
        assert reader.get_last_response_id() == done["id"]
        assert ears.closed.wait(PATIENCE_S)
        assert ears.close_code == 1000

    def test_text_is_read_when_it_is_committed(self, product: Product) -> None:
        ears = Ears()
        reader = QwenTtsRealtime(model="qwen-tts-realtime", callback=ears, url=product.url)
        reader.connect()
        reader.update_session(voice="Cherry", mode="commit", sample_rate=16_000, speech_rate=1.5)
        for text in ("Eight lives.", "Ten green bottles."):
            reader.append_text(text)
            reader.commit()
            events = ears.wait("response.done")
            assert "input_text_buffer.committed" in {event["type"] for event in events}
            assert events[-1]["response"]["usage"] == {"characters": len(text)}
            assert 0.3 < sound_s(events, 16_000) < 5
        reader.append_text("Not this.")
        reader.clear_appended_text()
        reader.finish()
        events = ears.wait("session.finished")

        assert "input_text_buffer.cleared" in {event["type"] for event in events}
        assert sound_s(events) == 0
        rows = product.rows("select quantity from accounts_usagerecord where unit = 'characters' and quantity = 18")
        assert rows

    def test_what_is_cancelled_falls_silent(self, product: Product) -> None:
        ears = Ears()
        reader = QwenTtsRealtime(model=MODEL, callback=ears, url=product.url)
        reader.connect()
        reader.append_text("This is a sentence. " * 200)
        ears.wait("response.audio.delta")
        reader.cancel_response()
        events = ears.wait("response.done")

        assert events[-1]["response"]["status"] == "cancelled"
        assert sound_s(events) < 120
        reader.append_text("Nine.")
        reader.finish()
        assert 0.1 < sound_s(ears.wait("session.finished")) < 5


REFUSED = [
    ({"type": "input_audio_buffer.append", "audio": ""}, "unknown_event_type"),
    ({"type": "input_text_buffer.append"}, "missing_required_parameter"),
    ({"type": "input_text_buffer.append", "text": 7}, "invalid_type"),
    ({"type": "input_text_buffer.append", "text": "x" * 20_001}, "invalid_value"),
    ({"type": "session.update", "session": {"mode": "later"}}, "invalid_value"),
    ({"type": "session.update", "session": {"voice": 7}}, "invalid_value"),
    ({"type": "session.update", "session": {"sample_rate": 7}}, "invalid_value"),
    ({"type": "session.update", "session": {"response_format": ["pcm"]}}, "invalid_value"),
    ({"type": "response.cancel"}, "response_cancel_not_active"),
    ({"type": ["session.update"]}, "unknown_event_type"),
    ([], "invalid_json"),
]


def test_what_cannot_be_read_is_refused_and_the_session_goes_on(product: Product) -> None:
    with opened(product) as socket:
        for message, code in REFUSED:
            socket.send(json.dumps(message))
            assert heard(socket, "error")["error"]["code"] == code
        socket.send(b"\x00")
        assert heard(socket, "error")["error"]["code"] == "invalid_frame"
        tell(socket, "response.cancel")
        assert heard(socket, "error")["error"]["event_id"] == "mine"
        tell(socket, "input_text_buffer.append", text="Nine.")
        tell(socket, "session.finish")
        assert heard(socket, "response.done")["response"]["status"] == "completed"
        heard(socket, "session.finished")


def test_what_waits_for_a_commit_is_bounded(product: Product) -> None:
    with opened(product) as socket:
        tell(socket, "session.update", session={"mode": "commit"})
        tell(socket, "input_text_buffer.append", text="x" * 20_000)
        tell(socket, "input_text_buffer.append", text="x")
        assert heard(socket, "error")["error"]["code"] == "input_text_buffer_full"


async def closed_books(product: Product, session_id: str) -> dict[str, Any]:
    return await product.row("select * from realtime_realtimesession where id = ? and ended_at is not null", session_id)


async def test_it_leaves_the_rows_of_a_session(product: Product) -> None:
    with opened(product) as socket:
        session_id = heard(socket, "session.created")["session"]["id"]
        tell(socket, "session.update", session={"mode": "commit"})
        for text in ("Two swans swim.", "Ten green bottles."):
            tell(socket, "input_text_buffer.append", text=text)
            tell(socket, "input_text_buffer.commit")
            heard(socket, "response.done")
        tell(socket, "session.finish")
        heard(socket, "session.finished")
    session = await closed_books(product, session_id)
    turns = product.rows("select * from realtime_turn where session_id = ? order by ordinal", session_id)

    assert (session["close_code"], session["model"], session["transport"]) == (1000, MODEL, "websocket")
    assert [(turn["assistant_text"], turn["status"]) for turn in turns] == [
        ("Two swans swim.", "completed"),
        ("Ten green bottles.", "completed"),
    ]
    assert session["turn_count"] == 2
    assert session["output_audio_ms"] == sum(turn["output_audio_ms"] for turn in turns) > 600
    assert not product.rows("select * from accounts_usagerecord where request_id like ?", f"{session_id}%")


@pytest.mark.parametrize(
    ("key", "status"), [("revoked", 401), ("elsewhere", 403), ("narrow", 403)], ids=["revoked", "elsewhere", "narrow"]
)
def test_who_may_not_is_refused_at_the_door(product: Product, key: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused, opened(product, key=key):
        pass
    assert refused.value.response.status_code == status
