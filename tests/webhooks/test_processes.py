"""Real processes: the vendor's own library, a conversation that is told of, and killings at any moment."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from dashscope.agentstudio import Client
from dashscope.agentstudio.exceptions import InternalServerError, InvalidRequestError, NotFoundError
from django.conf import settings
from standardwebhooks import Webhook

from tests.postgres import PostgresServer
from tests.realtime.product import Home, Product, make_home
from tests.realtime.webrtc.caller import calling
from tests.serving import Process
from tests.thorough import IS_THOROUGH, usually
from tests.web import everywhere, listening_beside
from tests.webhooks.conftest import OF_A_CONVERSATION

LOCAL: dict[str, Any] = {"WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8"}
SETTLED_S = 120.0
ROUNDS = 6 if IS_THOROUGH else 2
CHANGES = 30

PRODUCER = """
import sys
import django
django.setup()
from django.db import transaction
from voiceapp.accounts.models import Workspace
from voiceapp.realtime.records import webhook_events
from voiceapp.realtime.models import RealtimeSession
workspace = Workspace.objects.get()
for _ in sys.stdin:
    with transaction.atomic():
        row = RealtimeSession.objects.create(
            account_id=workspace.account_id, workspace=workspace, model="voice", transport="websocket"
        )
        webhook_events.tell(workspace.pk, [row.pk], webhook_events.BEGUN)
    print(row.pk, flush=True)
"""
"""A state change for each line that it is told, with what is told of it."""


class Receiver:
    """Takes what is delivered, but for a share that is refused."""

    def __init__(self, flaky: float = 0.0) -> None:
        self.flaky = flaky
        self.origin = ""
        self.calls: list[tuple[str, dict[str, str], bytes, int]] = []
        """Path, headers, body and answer of every call."""
        self._came = threading.Condition()
        self._chance = random.Random(7)

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        status = 503 if self._chance.random() < self.flaky else 200
        with self._came:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.calls.append((request.path, headers, body, status))
            self._came.notify_all()
        return web.Response(status=status)

    def url(self, path: str = "") -> str:
        return f"{self.origin}/{path}"

    def taken(self, path: str = "") -> dict[str, bytes]:
        return {
            headers["webhook-id"]: body
            for at, headers, body, status in list(self.calls)
            if at == f"/{path}" and status == 200
        }

    def until(self, condition: Any, timeout_s: float = SETTLED_S) -> None:
        with self._came:
            assert self._came.wait_for(condition, timeout_s), f"{len(self.calls)} calls came"


@contextmanager
def receiving(flaky: float = 0.0) -> Iterator[Receiver]:
    receiver = Receiver(flaky)
    with listening_beside(everywhere(receiver.take)) as receiver.origin:
        yield receiver


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home") / "home")


@pytest.fixture(scope="module")
def product(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    running = Product(home, tmp_path_factory.mktemp("served") / "served", **LOCAL)
    yield running
    running.stop()


@pytest.fixture
def client(product: Product) -> Iterator[Client]:
    with Client(api_key=product.keys["good"], base_url=f"{product.origin}/api/v1/agentstudio") as client:
        yield client


def test_the_vendors_library_manages_endpoints(client: Client) -> None:
    with receiving() as receiver:
        made = client.webhook_endpoints.create(url=receiver.url("a"), events=["session.created"], description="Ours")
        assert made.signing_secret.startswith("whsec_")
        assert client.webhook_endpoints.retrieve(made.id).status == "ACTIVE"
        assert made.id in [endpoint.id for endpoint in client.webhook_endpoints.list().data]
        updated = client.webhook_endpoints.update(made.id, events=["session.updated", "task.finished"])
        assert (updated.events, updated.url) == (["session.updated", "task.finished"], receiver.url("a"))
        sent = client.webhook_endpoints.test(made.id)
        assert (sent.data.type, sent.data.id) == ("webhook.test", made.id)
        [(_, headers, body, _)] = receiver.calls
        assert Webhook(made.signing_secret).verify(body, headers)["id"] == sent.id
        assert client.webhook_endpoints.disable(made.id).disabled_reason == "MANUAL"
        assert client.webhook_endpoints.enable(made.id).status == "ACTIVE"
        assert client.webhook_endpoints.reset_secret(made.id).signing_secret != made.signing_secret
        assert [event.id for event in client.webhook_endpoints.list_events(made.id, limit=5)] == [sent.id]
        client.webhook_endpoints.delete(made.id)
        with pytest.raises(NotFoundError) as gone:
            client.webhook_endpoints.retrieve(made.id)
        assert gone.value.code == "11800001"


def test_the_vendors_library_reads_refusals(client: Client) -> None:
    with pytest.raises(InvalidRequestError, match="kind of event"):
        client.webhook_endpoints.create(url="http://127.0.0.1:9/", events=["vault.invented"])
    made = client.webhook_endpoints.create(url="http://127.0.0.1:9/", events=["session.created"])
    with pytest.raises(InternalServerError) as failed:
        client.webhook_endpoints.test(made.id)
    assert failed.value.code == "11800015"
    client.webhook_endpoints.delete(made.id)


async def test_a_call_is_told_as_any_conversation_is(product: Product, client: Client) -> None:
    with receiving() as receiver:
        made = client.webhook_endpoints.create(url=receiver.url(), events=OF_A_CONVERSATION)
        async with calling(product.origin, product.keys["good"]) as caller:
            session = (await caller.wait("session.created"))["session"]["id"]
            await caller.send("session.update", session={"modalities": ["text"]})
            await caller.wait("session.updated")
            await caller.ask("What time is it?")
            await caller.wait("response.done")
        await asyncio.to_thread(receiver.until, lambda: len(receiver.calls) >= len(OF_A_CONVERSATION))
        events = [Webhook(made.signing_secret).verify(body, head) for _, head, body, _ in receiver.calls]
        events.sort(key=lambda event: (event["created_at"], event["id"]))
        assert [event["data"]["type"] for event in events] == OF_A_CONVERSATION
        assert {event["data"]["id"] for event in events} == {session}
        client.webhook_endpoints.delete(made.id)


def test_a_finished_task_is_told(product: Product, client: Client) -> None:
    with receiving() as receiver:
        made = client.webhook_endpoints.create(url=receiver.url(), events=["task.finished"])
        speech = {"model": "tts-1", "input": {"text": "Hello."}}
        task_id = product.ask("/api/v1/services/audio/tts/synthesis", speech).body["output"]["task_id"]
        receiver.until(lambda: receiver.calls)
        assert json.loads(receiver.calls[0][2])["data"].items() >= {"id": task_id, "type": "task.finished"}.items()
        client.webhook_endpoints.delete(made.id)


@pytest.fixture(params=usually("sqlite", more=("postgresql",)))
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """Variables of an installation on this kind of database."""
    if request.param == "sqlite":
        return {}
    server: PostgresServer = request.getfixturevalue("postgres")
    return {"DATABASE_URL": server.fresh()}


def test_nothing_is_lost_when_the_sender_and_the_producer_are_killed(database: dict[str, str], tmp_path: Path) -> None:
    quick = {"TASK_LEASE_S": "1", "WEBHOOK_RETRY_SCHEDULE": ",".join(["0.1"] * 20), "TASK_ENGINE": "worker"}
    home = make_home(tmp_path / "home", **database, **LOCAL, **quick)
    product = Product(home, tmp_path / "served")
    secrets = {}
    chance = random.Random(11)
    with (
        receiving(flaky=0.15) as receiver,
        Client(api_key=product.keys["good"], base_url=f"{product.origin}/api/v1/agentstudio") as client,
    ):
        for path in ("a", "b"):
            made = client.webhook_endpoints.create(
                url=receiver.url(path), events=["session.created", "session.thread_created"]
            )
            secrets[path] = made.signing_secret
        said: list[str] = []
        for _ in range(ROUNDS):
            before = len(receiver.calls)
            worker = Process("worker", environment=product.environment)
            producer = subprocess.Popen(
                [sys.executable, "-c", PRODUCER],
                env=product.environment,
                cwd=settings.BASE_DIR,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert producer.stdin is not None
            assert producer.stdout is not None
            producer.stdin.write("\n" * CHANGES)
            producer.stdin.flush()
            changes = chance.randint(5, CHANGES - 5)
            lines = [producer.stdout.readline().strip() for _ in range(changes)]
            assert all(re.fullmatch(r"sess_\w+", line) for line in lines), "the producer failed: see standard error"
            said += lines
            producer.kill()
            enough = before + chance.randint(5, 4 * changes)  # two events of each, to two endpoints
            receiver.until(lambda enough=enough: len(receiver.calls) >= enough)
            worker.signal(signal.SIGKILL)
            said += [line for line in producer.stdout.read().split("\n") if re.fullmatch(r"sess_\w+", line)]
            producer.wait()
            worker.wait()
        worker = Process("worker", environment=product.environment)
        try:
            changed = {row["id"] for row in product.rows("SELECT id FROM realtime_realtimesession")}
            receiver.until(lambda: all(len(receiver.taken(path)) >= 2 * len(changed) for path in secrets))
        finally:
            worker.kill()
        status = product.stop()
    assert set(said) <= changed
    assert len(changed) > ROUNDS * 5
    for path, secret in secrets.items():
        taken = [json.loads(body)["data"] for body in receiver.taken(path).values()]
        assert sorted((data["id"], data["type"]) for data in taken) == sorted(
            (session, kind) for session in changed for kind in ("session.created", "session.thread_created")
        )
        for at, headers, body, _ in receiver.calls:
            if at == f"/{path}":
                Webhook(secret).verify(body, headers)
                assert receiver.taken(path)[headers["webhook-id"]] == body
    assert status == 0
