"""Tasks on a Celery with a Redis for its messages; who works is killed, and so is the Redis."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.accounts.redis import RedisServer
from tests.leases.conftest import House
from tests.leases.pausing import SECRETS
from tests.realtime.product import Home
from tests.serving import STOP_S
from tests.thorough import IS_THOROUGH

KILLINGS = 2 if IS_THOROUGH else 1


class CeleryWorker:
    """`celery worker` with two processes for the work, once it listens."""

    def __init__(self, house: House, folder: Path) -> None:
        self._log = folder / "celery.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "voiceapp.server.celery", "worker", "-c", "2", "-l", "INFO"],
                cwd=settings.BASE_DIR,
                env=house.server.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> int:
        """As a host does; returns the exit status."""
        self._process.terminate()
        return self._process.wait(STOP_S)

    def kill(self) -> None:
        """A crash of the machine: every process of it is gone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_S)

    @property
    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as folder:
        server = RedisServer(Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def house(home: Home, redis: RedisServer, tmp_path: Path) -> Iterator[House]:
    broker = redis.url.replace("unix", "redis+socket")
    house = House(home, tmp_path / "house", TASK_ENGINE="celery", CELERY_BROKER_URL=broker)
    yield house
    house.close()


def test_a_celery_that_is_killed_loses_nothing_and_neither_does_its_broker(
    house: House, redis: RedisServer, tmp_path: Path
) -> None:
    chance = random.Random(3)
    celery = CeleryWorker(house, tmp_path)
    first = house.create(0.0)
    assert house.follow(first)["task_status"] == "SUCCEEDED", celery.log
    accepted = []
    for _ in range(KILLINGS):
        accepted += [house.create(chance.uniform(0.4, 1.0), parts=2) for _ in range(8)]
        house.until_begun(chance.choice(accepted[-8:-4]))
        celery.kill()
        celery = CeleryWorker(house, tmp_path)
    redis.stop()
    accepted.append(house.create(0.0))
    redis.start()
    assert {house.follow(task)["task_status"] for task in accepted} == {"SUCCEEDED"}
    assert max(house.times_begun().values()) > 2, "nothing was killed in the middle"
    parts = house.server.rows("SELECT id FROM tasks_subtask WHERE status != 'SUCCEEDED'")
    assert parts == []
    assert "At work with key sk-*** and Bearer ***" in celery.log
    assert SECRETS not in celery.log
    assert celery.stop() == 0
    assert "raised unexpected" not in celery.log
