"""The cast: alice and bob share a workspace, charlie is a stranger; each has a login and a key."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from _pytest.nodeid import coerce_node_id
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.management import create_contenttypes
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache as django_cache
from django.db import connections
from django.db.models.signals import post_migrate
from django.test import Client
from hypothesis import HealthCheck, settings
from pytest_django.fixtures import Settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.models import offered
from tests.postgres import PostgresServer, start_postgres
from tests.prepared import shared_folder
from voiceapp.accounts.auth import key_directory
from voiceapp.accounts.keys import new_key
from voiceapp.accounts.models import Account, ApiKey, Membership, Workspace
from voiceapp.accounts.rates import rates
from voiceapp.accounts.seats import seats
from voiceapp.catalogue.cards import ModelCard
from voiceapp.database.thread import close_db_thread
from voiceapp.engines.models import weights
from voiceapp.webhooks.backlog import backlog

# How long an example takes, or its making, says how busy the machine is.
settings.register_profile("beside others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside others")

APART = {
    *("sqlite", "postgresql"),
    *("work", "news"),
}
"""Parameters whose tests share nothing with those of another: servers, databases, what leans on a database."""


@dataclass(frozen=True)
class Member:
    """One of the cast and everything that is theirs."""

    user: User
    account: Account
    workspace: Workspace
    row: ApiKey
    key: str
    """The text of the API key whose row is `row`."""

    @property
    def authorization(self) -> str:
        return f"Bearer {self.key}"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A test database in a file: async code reaches rows from other threads, and one in memory locks those out."""
    default = connections["default"].settings_dict
    if default["ENGINE"] == "voiceapp.database.sqlite3":
        path: Path = tmp_path_factory.mktemp("database") / "test.sqlite3"
        default.setdefault("TEST", {})["NAME"] = str(path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rows of an async test are committed, for its threads to see; rows of any other test are rolled back.

    Schemathesis gives the tests of all operations one name, of which pytest-xdist would run only one: they get numbers.
    """
    seen: Counter[str] = Counter()
    for item in items:
        seen[item.nodeid] += 1
        if seen[item.nodeid] > 1:
            item._id = coerce_node_id(f"{item.nodeid}[{seen[item.nodeid]}]")
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj) and "db" in item.fixturenames:
            item.add_marker(pytest.mark.django_db(transaction=True))


def pytest_configure() -> None:
    shared_folder()  # of the process that starts the workers


class BesideEachOther(LoadScopeScheduling):
    """Tests of a file stay on one worker, for they share what is costly to start, unless they are kept `APART`.

    Browser tests, which come last, share it for the whole run: they go one by one to the worker that is free, except
    from files with fixtures of their own. Groups by mark, `--dist loadgroup`, do nothing under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file.startswith("tests/browser/") and not _shares_fixtures(file):
            return nodeid
        parameters = test.partition("[")[2].rstrip("]").split("-")
        return " ".join([file, *(parameter for parameter in parameters if parameter in APART)])


@cache
def _shares_fixtures(file: str) -> bool:
    return 'scope="module"' in Path(__file__).parent.parent.joinpath(file).read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BesideEachOther:
    config.option.loadscopereorder = False  # browser tests come last, however `pytest` was called
    return BesideEachOther(config, log)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """What the process counts and remembers between requests starts empty in every test."""
    key_directory.forget()
    seats.cache_clear()
    rates.cache_clear()
    backlog.forget()
    django_cache.clear()


@pytest.fixture(scope="session", autouse=True)
def _no_connection_stays_open(django_db_setup: None) -> Iterator[None]:
    """PostgreSQL drops no database that somebody is connected to."""
    yield
    close_db_thread()


@pytest.fixture(scope="session", autouse=True)
def _permissions_stay(django_db_setup: None) -> None:
    """The flush after a test leaves permissions and content types: writing them anew takes it 17 of 18 ms."""
    introspection = connections["default"].introspection
    names = introspection.django_table_names
    stay = {ContentType._meta.db_table, Permission._meta.db_table}
    introspection.django_table_names = lambda **how: [name for name in names(**how) if name not in stay]
    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for those who start processes of their own on it."""
    with start_postgres() as server:
        yield server


def join(name: str, workspace: Workspace) -> Member:
    """A new person with a login and a key in a workspace."""
    user = User.objects.create_user(name, password=f"{name}-password")
    Membership.objects.create(user=user, account=workspace.account)
    row, key = new_key(workspace, f"{name}'s laptop")
    row.save()
    return Member(user, workspace.account, workspace, row, key)


@pytest.fixture
def shared_workspace(db: None) -> Workspace:
    """Where alice and bob work."""
    return Workspace.objects.create(account=Account.objects.create(name="Acme"), name="Default")


@pytest.fixture
def alice(shared_workspace: Workspace) -> Member:
    return join("alice", shared_workspace)


@pytest.fixture
def bob(shared_workspace: Workspace) -> Member:
    return join("bob", shared_workspace)


@pytest.fixture
def charlie(db: None) -> Member:
    return join("charlie", Workspace.objects.create(account=Account.objects.create(name="Zenith"), name="Default"))


@pytest.fixture
def operator(db: None) -> User:
    """Somebody who runs this installation: a superuser without an account of their own."""
    return User.objects.create_superuser("operator", password="operator-password")


@pytest.fixture
def desk(operator: User) -> Client:
    """A browser in which an operator is signed in."""
    client = Client()
    client.force_login(operator)
    return client


@pytest.fixture(scope="session")
def models() -> None:
    """The weights are there; tests of models are about nothing without them."""
    if missing := weights.missing():
        pytest.fail(f"Model files are missing ({', '.join(missing)}); run: python manage.py fetch_models")


@pytest.fixture
def only_models(settings: Settings) -> Iterator[Callable[..., None]]:
    """Makes the cards that it is called with the models of this server."""
    with ExitStack() as offers:

        def offer(*cards: ModelCard) -> None:
            offers.enter_context(offered(settings, cards))

        yield offer
