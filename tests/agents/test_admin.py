"""Agents in the operators' site: drafts, versions, and keys that are never shown."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile as File
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from voiceapp.agents.answering import _answering, chat_card, listed
from voiceapp.agents.documents import texts_of
from voiceapp.agents.files import AgentFileError, apply, hold
from voiceapp.agents.models import COMPOSED, Agent, AgentVersion
from voiceapp.catalogue.cards import ModelCard
from voiceapp.errors import ModelNotFound
from voiceapp.sealing import unseal

pytestmark = pytest.mark.django_db
ADD, LIST = "/admin/agents/agent/add/", "/admin/agents/agent/"
INLINE = {f"versions-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS", "MAX_NUM_FORMS")}


def form(**fields: Any) -> dict[str, Any]:
    """What the form sends for a new agent with these fields."""
    usual = {name: value for name, value in Agent().composition().items() if value not in (None, False)}
    return {**usual, **INLINE, "name": "desk", **fields}


def saved(client: Client, button: str = "_publish", **fields: Any) -> Agent:
    row = Agent.objects.filter(name="desk").first()
    sent = form(**(row.composition() if row else {}) | fields)
    sent = {name: value for name, value in sent.items() if value not in (None, False)}
    response = client.post(f"{LIST}{row.pk}/change/" if row else ADD, {**sent, button: "1"})
    assert response.status_code == 302, response.context["errors"]
    return Agent.objects.get(name="desk")


def current(agent: Agent) -> AgentVersion:
    assert agent.current is not None
    return agent.current


def card(agent: Agent) -> ModelCard:
    found = chat_card(agent, agent)
    assert found is not None
    return found


def test_a_draft_is_published_as_a_version_that_does_not_change(admin_client: Client) -> None:
    agent = saved(admin_client, instructions="One.")
    agent = saved(admin_client, "_continue", instructions="Two.")
    assert (agent.instructions, current(agent).instructions) == ("Two.", "One.")
    page = admin_client.get(f"{LIST}{agent.pk}/change/").content.decode()
    assert "instructions" in page.partition("Not yet published")[2][:300]
    agent = saved(admin_client)
    assert [version.number for version in agent.versions.all()] == [2, 1]
    assert saved(admin_client).versions.count() == 2, "nothing has changed, so nothing is published"
    saved(admin_client, "_restore")
    agent = saved(admin_client)
    assert current(agent).instructions == "One."
    assert (agent.versions.count(), current(agent).published_by) == (3, "admin")


def test_a_key_is_sealed_for_one_address_and_never_shown(admin_client: Client) -> None:
    fields = {"mind": "address", "address": "https://models.example.com/v1", "model": "m"}
    agent = saved(admin_client, key="sk-very-secret", **fields)
    assert "sk-very-secret" in (unseal(agent.sealed_key) or "")
    assert "sk-very-secret" not in agent.sealed_key
    assert b"very-secret" not in admin_client.get(f"{LIST}{agent.pk}/change/").content
    assert card(agent).options["api_key"] == "sk-very-secret"
    agent = saved(admin_client, address="https://thief.example.com/v1")
    assert card(agent).options["api_key"] == ""
    agent = saved(admin_client, address=fields["address"])
    assert card(agent).options["api_key"] == "sk-very-secret"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"mind": "address", "address": "http://10.1.2.3/v1", "model": "m"}, "MODEL_ALLOWED_NETWORKS"),
        ({"mind": "address", "address": "http://127.0.0.1:22/v1", "model": "m"}, "usual port"),
        ({"mind": "address", "address": "file:///etc/passwd", "model": "m"}, "must begin with http"),
        ({"mind": "address", "address": "http://169.254.169.254/v1", "model": "m"}, "MODEL_ALLOWED_NETWORKS"),
        ({"mind": "file"}, "Name a file"),
        ({"mind": "file", "file": "http://example.com/a.gguf"}, "Use https"),
        ({"mind": "file", "file": "https://[x/y.gguf"}, "This is not an address"),
        ({"mind": "file", "file": f"/{'ä' * 128}"}, "may have 255 bytes"),
        ({"mind": "file", "file": "hf:owner"}, "Name a file"),
        ({"name": "whisper-1"}, "is the name of a model"),
        ({"language": "klingon"}, "must be a code"),
        ({"fixed": "voice,colour"}, "There is no colour"),
        ({"terms": "word\n" * 101}, "at most 100"),
        ({"tools": "house"}, "MCP_SERVERS has no house"),
        ({"callers": 0}, "greater than or equal to 1"),
        ({"added": File("a.exe", b"MZ")}, "ends with .md or .txt"),
        ({"added": File("a.md", b"\xff\xfe")}, "write it in UTF-8"),
        ({"added": File("a.md", b"x" * 500_001)}, "500000 bytes in all"),
    ],
)
def test_what_cannot_be_is_said_in_the_form(admin_client: Client, fields: dict[str, Any], said: str) -> None:
    page = admin_client.post(ADD, form(**fields) | {"_publish": "1"})
    assert page.status_code == 200
    assert said in page.content.decode()
    assert not Agent.objects.exists()
    saved(admin_client, mind="address", address="http://127.0.0.1:11434/v1", model="m", fixed="voice", terms="word")
    for file in ("https://[::1]/y.gguf", f"/{'a' * 255}", "hf:owner/repository:Q8_0", "a.gguf"):
        assert not card(saved(admin_client, mind="file", file=file)).aliases


def test_documents_given_in_the_form_belong_to_the_version(admin_client: Client, settings: Settings) -> None:
    agent = saved(admin_client, added=[File("menu.md", b"# Menu"), File("hours.txt", "Täglich".encode())])
    first, folder = agent.documents, Path(card(agent).documents)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"hours.txt": "Täglich", "menu.md": "# Menu"}
    agent = saved(admin_client, removed=["hours.txt"], added=[File("menu.md", b"# New")])
    assert texts_of(agent.documents) == {"menu.md": "# New"}
    assert texts_of(first) == {"hours.txt": "Täglich", "menu.md": "# Menu"}
    page = admin_client.get(f"{LIST}{agent.pk}/change/").content.decode()
    assert 'name="removed" value="menu.md"' in page
    agent = saved(admin_client, "_restore")
    saved(admin_client)
    assert current(agent).documents == first


def test_with_a_folder_the_admin_shows_and_does_not_edit(admin_client: Client, settings: Settings) -> None:
    agent = saved(admin_client)
    settings.AGENTS_DIR = "/srv/agents"
    page = admin_client.get(f"{LIST}{agent.pk}/change/")
    assert "AGENTS_DIR holds" in page.content.decode()
    assert admin_client.post(f"{LIST}{agent.pk}/change/", form(title="X") | {"_publish": "1"}).status_code == 403
    assert admin_client.get(ADD).status_code == 403


def test_a_draft_is_for_people_who_may_change_it(admin_client: Client, admin_user: Any, django_user_model: Any) -> None:
    saved(admin_client, "_continue", title="Draft")
    visitor = django_user_model.objects.create_user("bob", password="x")
    assert _answering("desk", "draft", admin_user.pk, False, {}).title == "Draft"
    for user in (visitor.pk, None):
        with pytest.raises(ModelNotFound):
            _answering("desk", "draft", user, user is None, {})


def test_the_environment_decides_before_the_default_agent(admin_client: Client, settings: Settings) -> None:
    agent = Agent(name="voice", mind="address", address="https://models.example.com/v1", model="m")
    agent.save()
    assert card(agent).name == "m"
    settings.CHAT_ENGINE = "model"
    assert chat_card(agent, agent) is None
    assert b"The environment: CHAT_ENGINE" in admin_client.get(f"{LIST}{agent.pk}/change/").content


def test_every_field_of_a_version_has_its_place_in_the_form(admin_client: Client) -> None:
    page = admin_client.get(ADD).content.decode()
    assert [name for name in COMPOSED if f'name="{name}"' not in page] == ["documents"], "its form adds and removes"


def test_versions_are_for_keys_and_staff_and_guests_reach_what_is_public_now(
    admin_client: Client, admin_user: Any, django_user_model: Any
) -> None:
    visitor = django_user_model.objects.create_user("bob", password="x")
    saved(admin_client, is_public=True, title="One")
    assert _answering("desk", "", None, True, {}).title == "One"
    saved(admin_client, is_public=False, title="Two")
    for user, is_guest in ((None, False), (admin_user.pk, False)):
        assert _answering("desk", "1", user, is_guest, {}).version == 1
    assert _answering("desk", "", visitor.pk, False, {}).version == 2
    for version, user in (("", None), ("1", None), ("2", None), ("1", visitor.pk)):
        with pytest.raises(ModelNotFound):
            _answering("desk", version, user, user is None, {})


def test_a_key_of_the_environment_is_for_the_address_of_the_file(admin_client: Client, settings: Settings) -> None:
    fields = {"mind": "address", "model": "m"}
    saved(admin_client, address="https://old.example.com/v1", **fields)
    agent = saved(admin_client, address="https://new.example.com/v1", **fields)
    settings.AGENTS_DIR, settings.AGENT_KEYS = "/srv/agents", {"desk": "sk-new"}
    keys = [chat_card(agent, version).options["api_key"] for version in agent.versions.all()]  # type: ignore[union-attr]
    assert keys == ["sk-new", ""]


@pytest.mark.django_db(transaction=True)
def test_servers_that_start_together_publish_each_file_once(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"agent{number}.toml").write_text("pace = 1.5")
    step = Barrier(4)

    def start(_: int) -> list[AgentFileError]:
        step.wait(20)
        try:
            return apply(tmp_path, lambda _: step.wait(20))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as together:
        assert [*together.map(start, range(4))] == [[]] * 4
    assert [agent.versions.count() for agent in Agent.objects.all()] == [1] * 8


def test_an_agent_goes_with_its_file_and_not_with_the_folder(
    admin_client: Client, settings: Settings, tmp_path: Path
) -> None:
    kept = saved(admin_client)
    settings.AGENTS_DIR = str(tmp_path)
    for name in ("lobby", "reception"):
        (tmp_path / f"{name}.toml").write_text("is_public = true")
    assert hold(tmp_path, str) == []
    (tmp_path / "lobby.toml").unlink()
    (wrong,) = hold(tmp_path / "missing", str)
    assert "does not exist" in str(wrong)
    assert listed(is_guest=True) == ["lobby", "reception"]
    (tmp_path / "reception.toml").write_text("pase = 1.0")
    assert len(hold(tmp_path, str)) == 1
    assert listed(is_guest=True) == ["reception"]
    assert admin_client.post(f"{LIST}{kept.pk}/delete/", {"post": "yes"}).status_code == 302
    assert listed() == ["reception"]
