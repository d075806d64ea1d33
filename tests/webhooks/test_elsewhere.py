"""Endpoints that a second installation of this product has, through the operations of the first."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from pytest_django.fixtures import Settings

from tests.models import forget
from tests.ports import free_port
from tests.realtime.product import Product, make_home
from tests.webhooks.conftest import Handler, Program
from voiceapp.catalogue.servers import UpstreamSettings
from voiceapp.engines.upstream.client import services

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = "/api/v1/agentsvc/webhook_endpoints"
MISSING = (404, "11800001", "The webhook endpoint does not exist.")


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The service elsewhere."""
    folder: Path = tmp_path_factory.mktemp("far")
    product = Product(make_home(folder / "home"), folder / "served", WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8")
    yield product
    product.stop()


def made_at(far: Product) -> dict[str, Any]:
    """A new endpoint there."""
    body = {"url": "http://127.0.0.1:9/hook", "events": ["task.finished"], "description": "Theirs"}
    request = urllib.request.Request(
        f"{far.origin}{ROOT}",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {far.keys['good']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        found: dict[str, Any] = json.load(response)
    return found


def set_up(settings: Settings, origin: str, key: str, account: str) -> None:
    settings.UPSTREAM_WEBHOOK_ADDRESS = UpstreamSettings("", key, "").address | {"base_url": origin}
    settings.UPSTREAM_WEBHOOK_ACCOUNT = account


@pytest_asyncio.fixture(autouse=True)
async def _connections() -> AsyncIterator[None]:
    forget()
    yield
    for server in services().all():
        await server.close()
    forget()


async def test_the_account_that_is_named_looks_at_an_endpoint_there_and_deletes_it(
    far: Product, program: Program, stranger: Program, settings: Settings
) -> None:
    made = made_at(far)
    one = f"/{made['id']}"
    program.root = stranger.root = ROOT
    assert await program.bad("GET", one) == MISSING
    set_up(settings, far.origin, far.keys["good"], program.member.workspace.account.name)
    assert await stranger.bad("GET", one) == MISSING
    assert await stranger.bad("DELETE", one) == MISSING
    assert await program.bad("POST", f"{one}/disable") == MISSING
    response = await program.call("GET", one)
    assert (response.status_code, response.headers["X-Served-By"]) == (200, "upstream")
    hidden = {"signing_secret", "request_id"}
    found = response.json()
    assert {name: found[name] for name in made if name not in hidden} == {
        name: value for name, value in made.items() if name not in hidden
    }
    assert "signing_secret" not in found
    gone = await program.call("DELETE", one)
    assert (gone.status_code, gone.headers["X-Served-By"], gone.json().keys()) == (200, "upstream", {"request_id"})
    assert await program.bad("GET", one) == MISSING
    assert await program.bad("DELETE", one) == MISSING


async def test_what_is_here_is_not_asked_for_there(program: Program, stranger: Program, settings: Settings) -> None:
    made = await program.subscribe("http://127.0.0.1:9/hook")
    account = stranger.member.workspace.account.name
    set_up(settings, f"http://127.0.0.1:{free_port()}", "sk-canary", account)
    assert await stranger.bad("GET", f"/{made['id']}") == MISSING
    assert (await program.good("GET", f"/{made['id']}"))["id"] == made["id"]


@pytest.mark.parametrize("endpoint_id", ["..", "a%2Fb", "wep_%3Fx", "%2e%2e"])
async def test_an_id_leads_to_no_other_operation_there(program: Program, settings: Settings, endpoint_id: str) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.raw_path)
        return web.json_response({})

    async with _service(answer) as origin:
        set_up(settings, origin, "sk-canary", program.member.workspace.account.name)
        assert (await program.call("DELETE", f"/{endpoint_id}")).status_code == 404
    assert asked == []


@asynccontextmanager
async def _service(answer: Handler) -> AsyncIterator[str]:
    """The origin of something that answers every request."""
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


RECORD: dict[str, Any] = {
    "id": "wep_1",
    "description": "",
    "url": "https://example.org",
    "events": [],
    "status": "ACTIVE",
    "disabled_reason": None,
    "consecutive_fail": 0,
    "last_success_at": None,
    "last_failure_at": None,
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
}


@pytest.mark.parametrize(
    "sent",
    [
        [],
        RECORD | {"id": "wep_2"},
        RECORD | {"events": "all"},
        RECORD | {"description": "sk-canary"},
        RECORD | {"description": "x" * 70_000},
    ],
    ids=["a list", "another one", "no list of events", "our key", "too much"],
)
async def test_what_is_no_endpoint_is_not_handed_on(program: Program, settings: Settings, sent: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(sent)

    async with _service(answer) as origin:
        set_up(settings, origin, "sk-canary", program.member.workspace.account.name)
        response = await program.call("GET", "/wep_1")
    assert response.status_code == 503
    assert b"sk-canary" not in response.content


async def test_a_service_that_is_not_there_is_said_to_be(program: Program, settings: Settings) -> None:
    set_up(settings, f"http://127.0.0.1:{free_port()}", "sk-canary", program.member.workspace.account.name)
    response = await program.call("DELETE", "/wep_1")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
