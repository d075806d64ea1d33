"""The product as a process of its own: a fresh database, keys of every kind, and `manage.py serve` on a free port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import Message
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.prepared import LIGHT_VOICE, environment_of, once, prepare
from tests.serving import ServerProcess, manage

WRITTEN_S = 25.0
ANSWERED_S = 240.0
"""Longer than anything that a test takes away stays away: no request is helped by a caller who gives up."""
KEYS = ".keys.json"
"""Beside the folder: no server finds its keys in its own."""

_SETUP = """
import json
from datetime import timedelta
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, Membership, Workspace
call_command("migrate", verbosity=0)
now = timezone.now()
workspace = Workspace.objects.create(account=Account.objects.create(name="Acme"), name="Default")
keys = {}
for name, kind in {
    "good": {},
    "doomed": {},
    "revoked": {},
    "expired": {"expires_at": now + timedelta(hours=1)},
    "elsewhere": {"scopes": ["tasks"]},
    "narrow": {},
    "spent": {},
}.items():
    row, keys[name] = new_key(workspace, name, **kind)
    if name == "narrow":
        row.allowed_models = ["text-embedding-v4"]
    if name == "spent":
        row.monthly_budget_nano = 0
    if name == "revoked":
        row.revoked_at = now
    if name == "expired":
        row.created_at, row.expires_at = now - timedelta(hours=2), now - timedelta(hours=1)
    row.save()
user = User.objects.create_user("alice", password="alice-password")
Membership.objects.create(user=user, account=workspace.account)
print(json.dumps(keys), flush=True)
"""


@dataclass(frozen=True)
class Home:
    """A folder with a migrated database, to be copied for each server."""

    folder: Path
    keys: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What a caller is told, and how soon."""

    status: int
    headers: Message
    content: bytes
    after_s: float

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.content)
        return body

    @property
    def retry_after(self) -> str | None:
        return self.headers["Retry-After"]


def make_home(folder: Path, **variables: str) -> Home:
    """Put keys of every kind into a migrated database in `folder`, or into the one at a DATABASE_URL."""
    if variables:
        prepare(folder)
        return _with_keys(folder, variables)
    usual = _usual_home()
    shutil.copytree(usual.folder, folder, dirs_exist_ok=True)
    return Home(folder, usual.keys)


@cache
def _usual_home() -> Home:
    def make(folder: Path) -> None:
        prepare(folder)
        folder.with_suffix(KEYS).write_text(json.dumps(_with_keys(folder, {}).keys))

    folder = once("home", make)
    return Home(folder, json.loads(folder.with_suffix(KEYS).read_text()))


def _with_keys(folder: Path, variables: dict[str, str]) -> Home:
    environment = environment_of(folder) | variables
    status, log = manage("shell", "--verbosity", "0", "--command", _SETUP, environment=environment)
    assert status == 0, log
    return Home(folder, json.loads(log.splitlines()[-1]), variables)


class Product(ServerProcess):
    """One running server; `stop` ends it and leaves its log and its database to be read."""

    def __init__(
        self,
        home: Home,
        folder: Path,
        *,
        port: int = 0,
        arguments: Sequence[str] = (),
        is_ready: bool = True,
        **variables: str,
    ) -> None:
        """Start it; `is_ready=False` is for one that lacks something, and is then waited for until it has warmed up."""
        shutil.copytree(home.folder, folder, dirs_exist_ok=True)
        self.keys = home.keys
        self._is_ready = is_ready
        self._database = folder / "voiceapp.sqlite3"
        environment = environment_of(folder) | LIGHT_VOICE | home.variables | variables
        super().__init__(environment, port=port, arguments=arguments)

    def start(self) -> None:
        """Start the server, again after a crash; returns when it is ready. One that never is, is not left behind."""
        super().start()
        self.wait_until_ready(or_lacking=not self._is_ready)

    def ask(self, path: str, body: Any = None, *, key: str = "good") -> Reply:
        """Send a request, with a JSON body if it has one; what can be a task becomes one."""
        headers = {
            "Authorization": f"Bearer {self.keys[key]}",
            "Content-Type": "application/json",
            "X-DashScope-Async": "enable",
        }
        request = urllib.request.Request(
            self.origin + path, None if body is None else json.dumps(body).encode(), headers
        )
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=ANSWERED_S) as reply:
                return Reply(reply.status, reply.headers, reply.read(), time.monotonic() - began)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Reply(refusal.code, refusal.headers, refusal.read(), time.monotonic() - began)

    async def logged(self, part: str, *, within_s: float = WRITTEN_S) -> None:
        deadline = time.monotonic() + within_s
        while part not in self.log:
            assert time.monotonic() < deadline, f"{part} was never said:\n{self.log}"
            await asyncio.sleep(0.05)

    @property
    def url(self) -> str:
        """The realtime socket of programs, without its query."""
        return f"ws://{self.address}/api-ws/v1/realtime"

    @property
    def openai_url(self) -> str:
        """Where OpenAI's dialects are spoken."""
        return f"ws://{self.address}/v1/realtime"

    @property
    def page_url(self) -> str:
        return f"ws://{self.address}/voice/socket"

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """What the server wrote, as SQL sees it."""
        if (url := self._environment["DATABASE_URL"]).startswith("postgres"):
            with psycopg.connect(url, row_factory=dict_row) as postgres:
                return postgres.execute(query.replace("?", "%s"), values).fetchall()
        with contextlib.closing(sqlite3.connect(self._database, timeout=20)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    async def row(self, query: str, *values: object, within_s: float = WRITTEN_S) -> dict[str, Any]:
        """The one row of a query, once there is one: the books are written beside the conversation."""
        async with asyncio.timeout(within_s):
            while True:
                if found := self.rows(query, *values):
                    (row,) = found
                    return row
                await asyncio.sleep(0.05)

    def write(self, statement: str, *values: object) -> None:
        """Change the database behind the server's back, as another process of the product does."""
        with contextlib.closing(sqlite3.connect(self._database, timeout=20)) as connection, connection:
            connection.execute(statement, values)
