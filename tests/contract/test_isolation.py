"""Nothing of one account can be reached with the key or the login of another, whatever is asked for by whatever name.

Generated: every operation of the OpenAPI document and every address in Django's URL map, times every row that belongs
to an account, those without an operation of their own included. A stranger who names such a row gets what they get for
a name that was made up.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings as django_settings
from django.db import models
from django.http import HttpResponse
from django.test import AsyncClient
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.models import Account, ApiKey, Membership, Workspace
from voiceapp.api import openapi_document
from voiceapp.http.examples import BODIES
from voiceapp.http.middleware import API_ROOTS
from voiceapp.tasks.storage.uploads import SCHEME

KINDS = [
    model
    for model in apps.get_models()
    if model.__module__.startswith("voiceapp.") and not model.__module__.startswith("voiceapp.agents.")
]
"""Agents are left out: they are the operator's, and models to every caller."""
OPERATIONS = [
    (method, path, operation)
    for path, operations in openapi_document()["paths"].items()
    for method, operation in operations.items()
]
LONGEST_ANSWER = 200_000
SHORT = 6
NEAR = 7
"""Rows of the cast have numbers below each other's; so far away there is none."""
PARAMETER = re.compile(r"\{\w+\}")
CONVERTER = re.compile(r"<(?:(\w+):)?\w+>")
GROUP = re.compile(r"\(\?P<\w+>[^)]*\)")
MADE_UP_BY_THE_SERVER = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # request ids and tasks
    r"|\b(?:wep|whe|st|whsec|sess)[_-][\w+/=:-]+"
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{10,13}"
)
"""What differs between two responses that say the same."""


@dataclass
class Belongings:
    rows: dict[type[models.Model], models.Model] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """What stands in them and nowhere else."""

    def add(self, model: type[models.Model]) -> models.Model:
        """The row of this kind; it and what it refers to are made when there are none."""
        if model not in self.rows:
            self.rows[model] = model._default_manager.create(**dict(self._values(model)))
        return self.rows[model]

    def _values(self, model: type[models.Model]) -> Iterator[tuple[str, Any]]:
        for column in model._meta.concrete_fields:
            if isinstance(column, models.ForeignKey):
                yield column.name, self.add(column.remote_field.model)
            elif not column.primary_key or isinstance(column, models.CharField):
                value = self._value(column)
                if value is not None:
                    yield column.name, value

    def _value(self, column: models.Field[Any, Any]) -> Any:
        if column.name == "interrupted":  # a reply of which not all was heard
            return True
        if column.choices:
            return None if column.has_default() else next(iter(column.choices))[0]
        if column.name == "guest":  # who has a key or a login is none
            return None
        if column.unique and column.has_default():
            return None  # an identifier of the form that the operations know
        if isinstance(column, models.CharField | models.TextField):
            word = "canary" + "".join(random.choices(string.ascii_lowercase, k=14))
            if (column.max_length or len(word)) < len(word):
                return None
            self.words.append(word)
            return word
        if column.has_default() or column.null:
            return None
        if isinstance(column, models.DateTimeField):
            return timezone.now()
        if isinstance(column, models.BinaryField):
            return random.randbytes(32)
        return 1

    @property
    def names(self) -> list[str]:
        """Everything by which a row of these could be asked for: keys, and columns without a second of their kind."""
        found = {
            str(getattr(row, column.attname))
            for row in self.rows.values()
            for column in row._meta.concrete_fields
            if column.unique and isinstance(column, models.AutoField | models.CharField)
        }
        return sorted(found)

    def named_on(self, page: str) -> list[str]:
        """What a page may be asked for: an admin page for the row of its kind, any other page for every row."""
        keys = [
            str(row.pk)
            for model, row in self.rows.items()
            if f"/{model._meta.app_label}/{model._meta.model_name}/" in page
        ]
        return keys or self.names

    def snapshot(self) -> dict[str, Any]:
        return {
            model.__name__: model._default_manager.filter(pk=row.pk).values().get() for model, row in self.rows.items()
        }


def made_up(name: str, way: int = 1) -> str:
    """A name of the same shape that nothing has; of a number, a near one above or below (`way` is 1 or -1)."""
    if name.isdigit():
        return str(int(name) + way * NEAR)
    chance = random.Random(name)
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    return "".join(next((chance.choice(kind) for kind in kinds if letter in kind), letter) for letter in name)


@pytest.fixture
def belongings(alice: Member, settings: Settings) -> Belongings:
    settings.RATE_LIMITS = {"default": "off"}
    found = Belongings(
        {Account: alice.account, Workspace: alice.workspace, ApiKey: alice.row, type(alice.user): alice.user}
    )
    found.rows[Membership] = Membership.objects.get(user=alice.user)
    for model in KINDS:
        found.add(model)
    del found.rows[type(alice.user)]
    return found


def test_every_kind_of_row_that_belongs_to_an_account_is_there(belongings: Belongings) -> None:
    assert set(belongings.rows) == set(KINDS)
    assert {name.partition("_")[0] for name in belongings.names} >= {"1", "sess", "wep", "whe"}
    assert any(re.fullmatch(MADE_UP_BY_THE_SERVER, name) for name in belongings.names)


def addresses(path: str, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """What to put in the place of each parameter of a path."""
    count = len(PARAMETER.findall(path))
    return itertools.product(names, repeat=count) if count else iter([()])


def filled(path: str, values: Iterable[str]) -> str:
    supply = iter(values)
    return PARAMETER.sub(lambda _: next(supply), path)


def leaves(body: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts of a body are, but for the model's name."""
    children = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in children:
        if isinstance(value, str) and key != "model":
            yield (*where, key)
        else:
            yield from leaves(value, (*where, key))


def replaced(body: Any, where: tuple[Any, ...], text: str) -> Any:
    copy = json.loads(json.dumps(body))
    place = copy
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = text
    return copy


def in_the_path(path: str, body: Any, *named: str) -> tuple[str, Any]:
    return filled(path, named), body


def in_the_query(address: str, body: Any, query: str, name: str) -> tuple[str, Any]:
    return f"{address}?{query}={name}", body


def in_the_body(address: str, body: Any, where: tuple[Any, ...], name: str) -> tuple[str, Any]:
    return address, replaced(body, where, SCHEME + name)


async def asked(client: AsyncClient, method: str, address: str, body: Any, authorization: str) -> tuple[int, str]:
    headers = {"Authorization": authorization, "X-DashScope-Async": "enable"}
    content = b"" if body is None else json.dumps(body).encode()
    answer: HttpResponse = await client.generic(
        method.upper(), address, content, content_type="application/json", headers=headers
    )
    if answer.streaming:
        return answer.status_code, b"".join([part async for part in answer]).decode("utf-8", "replace")
    return answer.status_code, answer.content.decode("utf-8", "replace")


def alike(text: str, *names: str) -> str:
    """A response without what was asked for, and without what the server makes up anew each time."""
    for name in sorted(names, key=len, reverse=True):
        if len(name) > SHORT:
            text = text.replace(name, "·")
    text = MADE_UP_BY_THE_SERVER.sub("·", text)
    for name in names:  # a number may stand in an identifier by chance
        text = text.replace(name, "·")
    return text


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[f"{method} {path}" for method, path, _ in OPERATIONS]
)
async def test_a_strangers_key_finds_nothing(
    method: str, path: str, operation: dict[str, Any], belongings: Belongings, charlie: Member
) -> None:
    client = AsyncClient()
    names = await sync_to_async(lambda: belongings.names)()
    before = await sync_to_async(belongings.snapshot)()
    example = BODIES.get(path)
    queries = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    references = [name for name in names if not name.isdigit()]

    async def same(request: Callable[..., tuple[str, Any]], *named: str) -> None:
        """The request that names rows gets the response of one that names nothing."""
        address, body = request(*named)
        status, said = await asked(client, method, address, body, charlie.authorization)
        assert len(said) < LONGEST_ANSWER
        assert [word for word in belongings.words if word in alike(said, *named)] == [], address
        others = []
        for way in (1, -1):  # a number may lie at the edge of what is allowed
            strangers = [made_up(name, way) for name in named]
            other_status, other_said = await asked(client, method, *request(*strangers), charlie.authorization)
            if (status, other_status) == (200, 200) and body is not None:  # what is made of a text may vary
                return
            others.append((other_status, alike(other_said, *named, *strangers)))
            if others[-1] == (status, alike(said, *named, *strangers)):
                return
        pytest.fail(f"{address} {body}: {status} {said}, but {others}")

    for values in addresses(path, names):
        await same(partial(in_the_path, path, example), *values)
    somewhere = filled(path, [made_up(names[-1])] * len(PARAMETER.findall(path)))
    for query, name in itertools.product(queries, names):
        await same(partial(in_the_query, somewhere, example, query), name)
    if example is not None:
        for where, name in itertools.product(leaves(example), references):
            await same(partial(in_the_body, somewhere, example, where), name)

    assert await sync_to_async(belongings.snapshot)() == before


def pages(patterns: list[URLPattern | URLResolver], prefix: str = "/") -> Iterator[str]:
    """Every address of a page in the URL map; parameters as `{x}`."""
    for pattern in patterns:
        text = str(pattern.pattern).removeprefix("^").removesuffix("$")
        address = prefix + GROUP.sub("{x}", CONVERTER.sub("{x}", text)).replace("\\Z", "")
        if isinstance(pattern, URLResolver):
            yield from pages(pattern.url_patterns, address)
        elif not address.startswith(API_ROOTS):
            yield address


PAGES = sorted(set(pages(get_resolver().url_patterns)))


def test_there_are_pages() -> None:
    assert any(page.startswith(f"/{django_settings.ADMIN_PATH}tasks/") and "{x}" in page for page in PAGES)
    assert "/docs" in PAGES


@pytest.mark.parametrize("method", ["get", "post"])
async def test_a_strangers_login_finds_nothing(method: str, belongings: Belongings, charlie: Member) -> None:
    client = AsyncClient(raise_request_exception=False)
    await client.aforce_login(charlie.user)
    names = await sync_to_async(lambda: belongings.names)()
    before = await sync_to_async(belongings.snapshot)()

    for page in (page for page in PAGES if page != "/logout"):
        for name in belongings.named_on(page) if "{x}" in page else names[:1]:
            other = made_up(name)
            answers = []
            for asked_for in (name, other):
                address = filled(page, itertools.repeat(asked_for))
                answer = await client.generic(method.upper(), f"{address}?id={asked_for}")
                said = b"" if answer.streaming else answer.content
                words = [word for word in belongings.words if word in alike(said.decode("latin-1"), name)]
                assert words == [], address
                answers.append((answer.status_code, alike(answer.get("Location", ""), name, other)))
            assert answers[0] == answers[1], page

    assert await sync_to_async(belongings.snapshot)() == before
