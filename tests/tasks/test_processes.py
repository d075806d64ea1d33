"""Real processes: the vendor's own library as the caller, and a server that is killed while it works."""

from __future__ import annotations

import functools
import http.server
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import dashscope
import pytest
from dashscope.audio.asr import Transcription
from dashscope.embeddings import BatchTextEmbedding

from tests.postgres import start_postgres
from tests.realtime.product import Home, Product, make_home
from tests.serving import Process

SETTLED_S = 120.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home") / "home")


@pytest.fixture(scope="module")
def product(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    running = Product(
        home, tmp_path_factory.mktemp("served") / "served", FETCH_ALLOWED_NETWORKS="127.0.0.0/8", TASK_LEASE_S="2"
    )
    yield running
    running.stop()


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a file with three lines."""
    folder: Path = tmp_path_factory.mktemp("files")
    (folder / "texts.txt").write_text("one\ntwo\nthree\n")
    answering = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/texts.txt"
        server.shutdown()


@pytest.fixture
def _library(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashscope, "base_http_api_url", f"{product.origin}/api/v1")
    monkeypatch.setattr(dashscope, "api_key", product.keys["good"])


def request(product: Product, path: str, body: Any = None) -> urllib.request.Request:
    return urllib.request.Request(
        f"{product.origin}/api/v1/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {product.keys['good']}",
            "Content-Type": "application/json",
            "X-DashScope-Async": "enable",
        },
    )


def asked(product: Product, path: str, body: Any = None) -> dict[str, Any]:
    with urllib.request.urlopen(request(product, path, body), timeout=SETTLED_S) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def followed(product: Product, task_id: str) -> dict[str, Any]:
    """A task when it is over, by its stream of events."""
    with urllib.request.urlopen(request(product, f"tasks/{task_id}/events"), timeout=SETTLED_S) as stream:
        events = [json.loads(line[5:])["output"] for line in stream if line.startswith(b"data:")]
    last: dict[str, Any] = events[-1]
    return last


@pytest.mark.usefixtures("_library")
def test_the_library_creates_waits_for_and_lists_tasks(text_file: str) -> None:
    created = BatchTextEmbedding.async_call("text-embedding-v4", text_file)
    assert created.status_code == HTTPStatus.OK, created
    assert created.output.task_status == "PENDING"
    done = BatchTextEmbedding.wait(created)
    assert done.output.task_status == "SUCCEEDED", done
    with urllib.request.urlopen(done.output.url, timeout=SETTLED_S) as result:
        assert len(result.read().splitlines()) == 3
    listed = BatchTextEmbedding.list(model_name="text-embedding-v4")
    assert listed.status_code == HTTPStatus.OK
    assert created.output.task_id in [row["task_id"] for row in (listed.output or listed)["data"]]


@pytest.mark.usefixtures("_library")
def test_the_library_reads_what_failed_and_cannot_cancel_what_is_over(text_file: str) -> None:
    created = Transcription.async_call("paraformer-v2", [text_file])
    assert created.status_code == HTTPStatus.OK, created
    done = Transcription.wait(created)
    assert done.output.task_status == "FAILED"
    assert Transcription.fetch("0f7ba5d5-0000-4000-8000-000000000000").output.task_status == "UNKNOWN"
    refused = Transcription.cancel(created)
    assert (refused.status_code, refused.code) == (400, "UnsupportedOperation")


def test_no_accepted_task_is_lost_when_the_server_is_killed(product: Product) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 20
    accepted = []
    for round_ in range(2):
        for _ in range(6):
            body = {"model": "tts-1", "input": {"text": text}}
            accepted.append(asked(product, "services/audio/tts/synthesis", body)["output"]["task_id"])
        time.sleep(0.3 * round_)  # each time at another moment of the work
        product.kill()
        product.start()
    assert {followed(product, task_id)["task_status"] for task_id in accepted} == {"SUCCEEDED"}
    rows = product.rows("SELECT task_id FROM tasks_task WHERE kind = 'audio/tts/synthesis'")
    assert sorted(row["task_id"] for row in rows) == sorted(accepted)
    billed = product.rows(
        "SELECT count(*) AS lines, count(DISTINCT request_id) AS requests FROM accounts_usagerecord "
        "WHERE operation = 'speech'"
    )
    assert billed == [{"lines": len(accepted), "requests": len(accepted)}]


def test_calls_are_refused_while_the_database_is_away(tmp_path: Path) -> None:
    with start_postgres() as database:
        product = Product(make_home(tmp_path / "home", DATABASE_URL=database.fresh()), tmp_path / "served")
    try:
        for _ in range(2):  # a connection that breaks, then none
            with pytest.raises(urllib.error.HTTPError) as refused:
                asked(product, "tasks")
            assert refused.value.code == HTTPStatus.SERVICE_UNAVAILABLE
            assert json.load(refused.value)["code"] == "ServiceUnavailable"
            assert refused.value.headers["Retry-After"] == "1"
    finally:
        product.stop()


def test_a_stream_does_not_hold_up_the_stop(home: Home, tmp_path: Path) -> None:
    server = Product(home, tmp_path / "served", TASK_ENGINE="worker", DRAIN_S="300")
    try:
        body = {"model": "tts-1", "input": {"text": "Hello there."}}
        task_id = asked(server, "services/audio/tts/synthesis", body)["output"]["task_id"]
        with urllib.request.urlopen(request(server, f"tasks/{task_id}/events"), timeout=SETTLED_S) as stream:
            assert stream.readline() == b"event: task\n"
            server.signal()
            stream.read()  # a connection that is cut off raises here
        assert server.stop() == 0
    finally:
        server.stop()


def test_a_worker_process_does_what_a_server_leaves_to_it(home: Home, tmp_path: Path) -> None:
    server = Product(home, tmp_path / "served", TASK_ENGINE="worker")
    worker = Process("worker", environment=server.environment)
    try:
        body = {"model": "tts-1", "input": {"text": "Hello there."}}
        task_id = asked(server, "services/audio/tts/synthesis", body)["output"]["task_id"]
        assert followed(server, task_id)["task_status"] == "SUCCEEDED"
        worker.signal()
        assert worker.wait() == 0
        assert server.rows("SELECT leased_by FROM tasks_task") != [{"leased_by": ""}]
        assert server.stop() == 0
    finally:
        worker.kill()
        server.stop()
