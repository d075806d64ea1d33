"""The other long-lived commands: the worker, and the development server."""

from __future__ import annotations

import http.client
import json
import re
import signal
import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.serving import PATIENCE_S, Process

from .process import environment_in, served


@pytest.mark.django_db
def test_purge_deletes_expired_logins() -> None:
    now = timezone.now()
    Session.objects.create(session_key="old", session_data="", expire_date=now - timedelta(days=1))
    Session.objects.create(session_key="new", session_data="", expire_date=now + timedelta(days=1))
    call_command("purge")
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]


def test_the_worker_goes_on_without_a_database_and_stops_when_told(tmp_path: Path) -> None:
    environment = environment_in(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/no/such/folder/x.sqlite3")
    worker = Process("worker", environment=environment, is_fresh=True)
    try:
        worker.wait_for("Housekeeping waits for the database")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
        assert "Stopped" in worker.log
    finally:
        worker.kill()


def test_serve_keeps_house_without_a_worker(tmp_path: Path) -> None:
    database = tmp_path / "kept.sqlite3"
    environment = environment_in(tmp_path, DATABASE_URL=f"sqlite:///{database}")
    assert Process("migrate", "--verbosity", "0", environment=environment).wait() == 0
    with closing(sqlite3.connect(database)) as rows:
        rows.execute("INSERT INTO django_session VALUES ('old', '', '2020-01-01')")
        rows.commit()
    with (
        served(tmp_path, is_fresh=True, DATABASE_URL=f"sqlite:///{database}"),
        closing(sqlite3.connect(database)) as rows,
    ):
        deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
        while rows.execute("SELECT 1 FROM django_session").fetchone():
            assert time.monotonic() < deadline, "the expired login is still there"
            pause.wait(0.05)


def test_runserver_serves_pages_sockets_and_refusals(tmp_path: Path) -> None:
    process = Process("runserver", "--noreload", "127.0.0.1:0", environment=environment_in(tmp_path), is_fresh=True)
    try:
        port = int(process.wait_for(re.compile(r"Listening on TCP address 127\.0\.0\.1:(\d+)"))[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("GET", "/page", headers={"Daphne-Root-Path": "/evil"})
        assert json.loads(connection.getresponse().read())["root_path"] == ""
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        with connect(f"ws://127.0.0.1:{port}/echo", open_timeout=PATIENCE_S) as talker:
            talker.send("hello")
            assert talker.recv(timeout=PATIENCE_S) == "hello"
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://127.0.0.1:{port}/refuse?401", open_timeout=PATIENCE_S)
        assert refused.value.response.status_code == 401
        process.signal(signal.SIGINT)
        assert process.wait() == 0
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"DATABASE_URL": "notaurl"}, "DATABASE_URL names no database that is used here"),
        ({"DATABASE_URL": "postgres://me:hid/den@db:5432/name"}, "DATABASE_URL names no database that is used here"),
        ({"DATABASE_URL": "mysql://me:hidden@db/name"}, "DATABASE_URL names no database that is used here"),
        ({"DATABASE_URL": "sqlite:////no/such/folder/x"}, "The database does not answer: unable to open database file"),
        ({"VAR_DIR": "/proc/nowhere", "DATABASE_URL": "sqlite:////proc/nowhere/x"}, "VAR_DIR is '/proc/nowhere'"),
        ({"ALLOWED_HOSTS": "https://voice.example.org"}, "ALLOWED_HOSTS holds names of hosts"),
        ({"RATE_LIMITS": "fast"}, "RATE_LIMITS is 'fast', which cannot be read: write NAME=VALUE"),
    ],
)
def test_an_operators_mistake_is_told_in_a_sentence(tmp_path: Path, variables: dict[str, str], said: str) -> None:
    command = Process("migrate", "--skip-checks", environment={**environment_in(tmp_path), **variables})
    assert command.wait() == 1
    assert command.log.startswith(said)
    assert command.log.count("\n") == 1
    assert "hidden" not in command.log
