"""The page on which operators choose, fetch and try what replies."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from pytest_django.fixtures import Settings

from tests.engines.models.test_download import MODEL, Server, on_hub
from tests.engines.models.test_download import server as server
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import chat_server as chat_server
from voiceapp.agents.models import Agent
from voiceapp.catalogue.defaults import chat_model_file
from voiceapp.engines.models.local_servers import local_servers
from voiceapp.operators.assistant import fetches
from voiceapp.outbound import model_servers

pytestmark = pytest.mark.django_db
PAGE = "/admin/assistant/voice/"


@pytest.fixture
def found(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    monkeypatch.setattr(model_servers, "WELL_KNOWN", {chat_server.port: "Ollama"})
    monkeypatch.setattr("voiceapp.engines.models.local_servers.WELL_KNOWN", {chat_server.port: "Ollama"})
    return chat_server


def chosen(client: Client, action: str, **fields: Any) -> str:
    return client.post(PAGE, {"action": action, **fields}, follow=True).content.decode()


def test_a_server_on_this_machine_is_found_used_and_tried(
    admin_client: Client, found: ChatServer, models: None
) -> None:
    (local,) = async_to_sync(local_servers)()
    assert local.line.startswith(
        f"Ollama with bard answers here. Use it: CHAT_BASE_URL={found.base_url} CHAT_MODEL=bard"
    )
    assert "Ollama answers here" in admin_client.get(PAGE).content.decode()
    assert "New conversations have voice@1." in chosen(
        admin_client, "address", address=found.base_url, model="bard", key=KEY
    )
    page = chosen(admin_client, "try")
    assert "I am here." in page
    assert "data:audio/wav;base64,UklGR" in page
    assert "Tokens per second" in page
    assert KEY not in page
    assert "media-src" in admin_client.get(PAGE)["Content-Security-Policy"]


def test_a_model_that_fails_its_trial_says_why(admin_client: Client, found: ChatServer) -> None:
    chosen(admin_client, "address", address=found.base_url, model="bard", key="wrong")
    assert "refused the key" in chosen(admin_client, "try")


@pytest.mark.parametrize(
    "address",
    [
        *("http://127.0.0.1:22/v1", "http://169.254.169.254/v1", "ftp://x", "", "https://example.org/v1?", "{here}#"),
        *("{here}?x=", "{here}/../../admin", "http://localhost:22/v1"),
    ],
)
def test_an_address_that_is_not_allowed_is_refused(admin_client: Client, found: ChatServer, address: str) -> None:
    chosen(admin_client, "address", address=address.replace("{here}", found.base_url), model="m")
    assert not Agent.objects.exists()
    chosen(admin_client, "address", address=found.base_url, model="m")
    assert Agent.objects.get().current is not None


def test_a_file_of_a_hub_is_fetched_when_that_is_asked_for(
    admin_client: Client, settings: Settings, server: Server, tmp_path: Path
) -> None:
    settings.MODELS_DIR, settings.HF_ENDPOINT = tmp_path, server.url.partition("/models")[0]
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    server.tree = [on_hub("tiny-Q4_K_M.gguf", hashlib.sha256(MODEL).hexdigest())]
    name = "hf:owner/tiny:Q4_K_M"
    page = chosen(admin_client, "file", file=name)
    assert "Fetch it" in page
    assert not server.ranges, "nothing is fetched before that is asked for"
    assert Agent.objects.get().current is None
    chosen(admin_client, "fetch")
    with fetches._busy:
        chosen(admin_client, "fetch")
    assert chat_model_file(name, tmp_path).read_bytes() == MODEL
    assert "voice@1" in chosen(admin_client, "file", file=name)


def test_a_choice_publishes_nothing_else_of_the_draft(admin_client: Client) -> None:
    reception = Agent.objects.create(name="reception", instructions="Be kind.")
    page = f"/admin/assistant/{reception}/"
    admin_client.post(page, {"action": "skills"})
    assert reception.current is None, "what was never published is not published by a choice of its model"
    reception.publish("an operator")
    Agent.objects.update(instructions="Half writ", is_public=True)
    admin_client.post(page, {"action": "skills"})
    current, draft = reception.current, Agent.objects.get()
    assert current is not None
    assert (current.number, current.mind, current.instructions, current.is_public) == (2, "skills", "Be kind.", False)
    assert (draft.mind, draft.instructions, draft.is_public) == ("skills", "Half writ", True)


@pytest.mark.parametrize("action", ["server", "fetch", "x"])
def test_an_action_that_is_not_there_changes_nothing(admin_client: Client, action: str) -> None:
    assert admin_client.post(PAGE, {"action": action}).status_code == 400
    assert not Agent.objects.exists()
    assert admin_client.post(PAGE, {"action": "skills"}).status_code == 302
    assert Agent.objects.get().current is not None


@pytest.mark.parametrize("name", ["https://h/\0", "hf:\0", "hf:" + "a" * 400])
def test_a_fetch_that_cannot_begin_says_so_and_makes_room(name: str, settings: Settings, tmp_path: Path) -> None:
    settings.MODELS_DIR = tmp_path
    fetches.start(name)
    with fetches._busy:
        assert fetches.news(name)
        assert not fetches.is_running(name)
        fetches.start("https://h/other.gguf")
    assert "Another model is being fetched" in fetches.news("https://h/other.gguf")


def test_the_environment_is_said_to_decide(admin_client: Client, settings: Settings) -> None:
    settings.CHAT_BASE_URL = "http://127.0.0.1:9/v1"
    assert "The environment decides what replies: CHAT_BASE_URL." in admin_client.get(PAGE).content.decode()
    chosen(admin_client, "skills")
    assert not Agent.objects.exists()


def test_it_is_for_those_who_may_change_agents(client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_user("eve", password="x", is_staff=True))
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"action": "skills"}).status_code == 403
    assert not Agent.objects.exists()
