"""Agents in conversations with a real server and a real chat server: who answers, and what the model is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI, NotFoundError, PermissionDeniedError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.agents.conftest import Apply
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from voiceapp.agents.answering import answering
from voiceapp.errors import ModelNotFound


@pytest.fixture(scope="module")
def product(serve: Serve, chat_server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Product:
    keys = f"reception={KEY},voice={KEY},desk={KEY}"
    folder = tmp_path_factory.mktemp("agents")
    return serve(MODEL_ALLOWED_NETWORKS="127.0.0.0/8", AGENT_KEYS=keys, AGENTS_DIR=str(folder), PUBLIC_PAGE="guest")


@pytest.fixture
def minded(chat_server: ChatServer) -> str:
    """The fields of an agent whose replies the chat server writes."""
    chat_server.requests.clear()
    return f'mind = "address"\naddress = "{chat_server.base_url}"\nmodel = "bard"\n'


def applied(apply: Apply, product: Product, **files: str) -> str:
    status, log = apply(product, **files)
    assert status == 0, log
    return log


async def test_the_model_is_told_that_it_is_heard_and_by_whom(
    product: Product, apply: Apply, chat_server: ChatServer, minded: str
) -> None:
    applied(apply, product, reception=minded + 'instructions = "You are the reception of {{house}}."')
    async with call(product.url, product.keys["good"], model="reception", query="&time_zone=Europe/Vienna") as talker:
        await talker.send("session.update", session={"instructions": "Call me Ann."})
        for count in (1, 2):
            await talker.ask("Who is there?")
            await talker.wait("response.done", count=count)
    asked = [request["messages"] for request in chat_server.requests if len(request["messages"]) in (2, 4)]
    assert [message["role"] for message in asked[0]] == ["system", "user"]
    assert asked[0][0] == asked[-1][0], "a prompt cache needs the same bytes from turn to turn"
    told = asked[0][0]["content"]
    assert len(asked[-1]) == 4
    assert told.startswith("You are talking with a person. Your reply is read aloud")
    assert told.index("the reception of .") < told.index("Call me Ann.") < told.index("Europe/Vienna")
    assert told.endswith("The caller's time zone is Europe/Vienna.")


async def test_the_default_agent_answers_under_every_alias_and_at_once_when_it_is_published(
    product: Product, apply: Apply, chat_server: ChatServer, minded: str
) -> None:
    async with call(product.url, product.keys["good"], model="voice") as talker:
        applied(apply, product, voice=minded + 'first_words = "Hello, this is the house."\n')
        await talker.ask("Sing me something.")
        await talker.wait("response.done")
        assert not chat_server.requests, "a conversation keeps the version that it began with"
    async with call(product.url, product.keys["good"], model="qwen-omni-turbo-realtime") as talker:
        await talker.wait("response.done")
        (said,) = talker.all("response.audio_transcript.done")
        assert said["transcript"] == "Hello, this is the house."
        await talker.ask("Sing me something.")
        await talker.wait("response.done", count=2)
    assert chat_server.requests[-1]["model"] == "bard"
    assert {"role": "assistant", "content": "Hello, this is the house."} in chat_server.requests[-1]["messages"]


async def test_what_is_fixed_stays_and_what_is_not_is_the_callers(product: Product, apply: Apply, minded: str) -> None:
    text = 'voice = "man"\ntemperature = 0.1\nfixed = "voice"\npatience = "calm"\nterms = """\nKowalczyk\n"""\n'
    applied(apply, product, reception=minded + text)
    async with call(product.url, product.keys["good"], model="reception") as talker:
        began = (await talker.wait("session.created"))["session"]
        await talker.send("session.update", session={"voice": "woman", "temperature": 0.5})
        now = (await talker.wait("session.updated"))["session"]
    assert (began["voice"], began["temperature"], began["turn_detection"]["silence_duration_ms"]) == ("man", 0.1, 1500)
    assert began["input_audio_transcription"]["keywords"] == ["Kowalczyk"]
    assert (now["voice"], now["temperature"]) == ("man", 0.5)


async def test_openais_prompt_names_agent_version_and_variables(
    product: Product, apply: Apply, chat_server: ChatServer, minded: str
) -> None:
    applied(apply, product, desk=minded + 'instructions = "First, for {{name}}."')
    applied(apply, product, desk=minded + 'instructions = "Second."')
    client = AsyncOpenAI(base_url=f"{product.origin}/v1", api_key=product.keys["good"])
    prompt = {"id": "desk", "version": "1", "variables": {"name": "Ann"}}
    secret = await client.realtime.client_secrets.create(session={"type": "realtime", "prompt": prompt})
    browser = AsyncOpenAI(base_url=f"{product.origin}/v1", api_key=secret.value)
    async with browser.realtime.connect(model="gpt-realtime") as connection:
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
        )
        await connection.response.create()
        async for event in connection:
            if event.type == "response.done":
                break
    assert "First, for Ann." in chat_server.requests[-1]["messages"][0]["content"]
    models = [model.id async for model in client.models.list()]
    assert {"desk", "voice"} <= {*models}
    await client.close()
    await browser.close()


async def test_openais_prompt_in_an_update_names_who_answers_from_then_on(
    product: Product, apply: Apply, chat_server: ChatServer, minded: str
) -> None:
    settings = 'first_words = "Desk here."\nvoice = "man"\ntemperature = 0.1\nsession_s = 3600\n'
    applied(apply, product, desk=minded + settings + 'instructions = "For {{name}}."', lobby=minded)
    prompt = {"id": "desk", "version": None, "variables": {"name": {"type": "input_text", "text": "Ann"}}}
    client = AsyncOpenAI(websocket_base_url=f"ws://{product.address}/v1", api_key=product.keys["good"])
    async with client.realtime.connect(model="gpt-realtime") as connection:
        told: list[Any] = []

        async def update(**session: Any) -> Any:
            await connection.session.update(session={"type": "realtime", **session})
            return await until("session.updated")

        async def until(kind: str) -> Any:
            async for event in connection:
                told.append(event)
                if event.type in (kind, "error"):
                    return event

        assert (await update(prompt={"id": "nothing"})).error.param == "session.prompt"
        await update(audio={"output": {"voice": "woman"}})
        updated = (await update(prompt=prompt)).session
        assert (updated.audio.output.voice, updated.prompt.id) == ("woman", "desk"), "the caller's own settings stay"
        done = (await until("response.done")).response
        assert done.output[0].content[0].transcript == "Desk here."
        await update(prompt=prompt)
        assert "keeps the agent" in (await update(prompt={"id": "lobby"})).error.message
        content = [{"type": "input_text", "text": "Hi"}]
        await connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        await connection.response.create()
        assert (await until("response.done")).response.status == "completed"
        session_id = next(event.session.id for event in told if event.type == "session.updated")
    assert "For Ann." in chat_server.requests[-1]["messages"][0]["content"]
    assert chat_server.requests[-1]["temperature"] == 0.1
    named = "select model, agent_version from realtime_realtimesession where id = ? and ended_at is not null"
    row = await product.row(named, session_id)
    assert row["model"] == "desk"
    used = await product.row("select distinct agent from accounts_usagerecord where request_id = ?", f"{session_id}:2")
    assert used["agent"] == f"desk@{row['agent_version']}"
    await client.close()


async def test_chat_and_responses_answer_as_the_agent(
    product: Product, apply: Apply, chat_server: ChatServer, minded: str
) -> None:
    text = 'instructions = "For {{name}}."\ntemperature = 0.1\nmax_tokens = 77\nfixed = "temperature"'
    applied(apply, product, desk=minded + text)
    client = AsyncOpenAI(base_url=f"{product.origin}/v1", api_key=product.keys["good"], max_retries=0)
    hi: Any = {"role": "user", "content": "Hi"}
    chat = await client.chat.completions.create(model="desk", messages=[hi], temperature=0.9)
    assert (chat.choices[0].message.content, chat.model) == ("I am here.", "desk")
    said = chat_server.requests[-1]
    assert said["messages"][0]["content"].startswith("For .\n\nToday is")
    assert "read aloud" not in str(said["messages"])
    assert (said["temperature"], said["max_tokens"], said["model"]) == (0.1, 77, "bard")
    prompt: Any = {"id": "desk", "variables": {"name": "Ann"}}
    response = await client.responses.create(prompt=prompt, input="Hi", max_output_tokens=20)
    assert response.output_text == "I am here."
    assert "For Ann." in chat_server.requests[-1]["messages"][0]["content"]
    assert chat_server.requests[-1]["max_tokens"] == 20
    counted = "select agent, model from accounts_usagerecord where operation = 'chat' and unit = 'output_tokens'"
    (used, _) = product.rows(counted)
    assert (used["agent"].partition("@")[0], used["model"]) == ("desk", "bard")
    for name, key, error in (("nothing", "good", NotFoundError), ("desk", "narrow", PermissionDeniedError)):
        with pytest.raises(error):
            await client.with_options(api_key=product.keys[key]).chat.completions.create(model=name, messages=[hi])
    await client.close()


async def test_documents_of_an_agent_are_its_own(product: Product, apply: Apply, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "menu.md").write_text("# Menu\n\nThe pumpkin soup costs nine euros and fifty cents.")
    applied(apply, product, desk='mind = "skills"', lobby='mind = "skills"')
    said = {}
    for name in ("desk", "lobby"):
        async with call(product.url, product.keys["good"], model=name) as talker:
            await talker.send("session.update", session={"modalities": ["text"]})
            for number, words in enumerate(("What does the pumpkin soup cost?", "How do I revoke an API key?"), 1):
                await talker.ask(words)
                await talker.wait("response.done", count=number)
            said[name] = [event["text"] for event in talker.all("response.text.done")]
    assert "nine euros" in said["desk"][0]
    assert "nine euros" not in said["lobby"][0]
    assert "revoke" in said["lobby"][1].lower()
    assert "Keys" not in said["desk"][1]


async def test_an_agent_neither_takes_nor_gives_what_it_is_forbidden(
    product: Product, apply: Apply, minded: str
) -> None:
    applied(apply, product, desk=minded + 'forbidden = """\nrumour\nI am here\n"""', reception=minded)
    failed = {}
    for name, words in (("desk", "Tell me a rumour."), ("desk", "Are you there?"), ("reception", "Tell me a rumour.")):
        async with call(product.url, product.keys["good"], model=name) as talker:
            await talker.ask(words)
            failed[name, words] = (await talker.wait("response.done"))["response"]["status"] == "failed"
    assert [*failed.values()] == [True, True, False]


async def test_an_agent_has_so_many_callers_at_once(product: Product, apply: Apply, minded: str) -> None:
    applied(apply, product, desk=minded + "callers = 1", lobby=minded)
    key = product.keys["good"]
    async with call(product.url, key, model="desk"):
        async with call(product.url, key, model="lobby") as other:
            await other.send("session.update", session={"prompt": {"id": "desk"}})
            assert "as many callers" in (await other.wait("error"))["error"]["message"]
        with pytest.raises(InvalidStatus) as refused:
            async with call(product.url, key, model="desk"):
                pass
        assert refused.value.response.status_code == 429
    async with call(product.url, key, model="lobby") as moved:
        await moved.send("session.update", session={"prompt": {"id": "desk"}})
        await moved.wait("session.updated")
        with pytest.raises(InvalidStatus):
            async with call(product.url, key, model="desk"):
                pass


@pytest.mark.parametrize("name", ["desk@700", "desk@draft", "nothing", "desk@", "desk@-1", "desk@²"])
async def test_what_does_not_exist_is_refused(product: Product, apply: Apply, minded: str, name: str) -> None:
    applied(apply, product, desk=minded)
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"{product.url}?model={name}", additional_headers=bearer(product, "good")):
            pass
    assert refused.value.response.status_code == 404


async def test_a_key_that_is_held_to_other_models_may_not(product: Product, apply: Apply, minded: str) -> None:
    applied(apply, product, desk=minded)
    for name, status in (("narrow", 403), ("good", 101)):
        headers = UPGRADE | bearer(product, name)
        async with aiohttp.ClientSession() as http, http.get(f"{product.url}?model=desk", headers=headers) as response:
            assert response.status == status


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def bearer(product: Product, name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {product.keys[name]}"}


async def test_a_guest_reaches_public_agents_only(product: Product, apply: Apply, minded: str) -> None:
    applied(apply, product, desk=minded, lobby=minded + "is_public = true\ntitle = 'The lobby'")
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{product.origin}/voice/config?agent=lobby") as response:
            found = await response.json()
        assert [(model["name"], model["title"]) for model in found["models"]] == [("lobby", "The lobby")]
        async with http.get(f"{product.origin}/a/lobby") as response:
            assert response.status == 200
            assert "The lobby" in await response.text()
        for path in ("/a/desk", "/voice/config?agent=desk", "/a/nothing"):
            async with http.get(f"{product.origin}{path}") as response:
                assert response.status == 404, path


def test_a_mistake_in_a_file_names_it_and_what_ran_goes_on(product: Product, apply: Apply, minded: str) -> None:
    applied(apply, product, desk=minded + 'instructions = "Kept."')
    for text, said in (
        (minded + "\npace = 9.0", "desk.toml, line 5: Ensure this value is less than or equal to 2.0."),
        (minded + "\npase = 1.0", "desk.toml, line 5: pase is not known."),
        (minded + 'pace = "fast"', "desk.toml, line 4: pace must be a number."),
        (minded + "pace = ", "desk.toml: Invalid value (at end of document)."),
        (
            'mind = "address"\naddress = "http://10.0.0.1/v1"\nmodel = "x"',
            "desk.toml, line 2: 10.0.0.1 is not a public",
        ),
        ('name = "x"', "desk.toml, line 1: name is not known."),
        ("max_tokens = inf", "desk.toml, line 1: max_tokens must be a number."),
        ("pace = nan", "desk.toml, line 1: pace must be a number."),
        (f"temperature = {10**400}", "desk.toml, line 1: temperature must be a number."),
        (r'title = "\u0000"', "desk.toml, line 1: title must be a text"),
    ):
        status, log = apply(product, desk=text, lobby=minded)
        assert status == 1
        assert said in log
        assert "Traceback" not in log
    assert "desk@1: unchanged" not in applied(apply, product, desk=minded)


@pytest.mark.parametrize("named", ["desk\0", "\0", "desk@1\0", "\ud800", "desk\n"])
async def test_a_name_that_cannot_be_reaches_no_database(named: str) -> None:
    with pytest.raises(ModelNotFound):
        await answering(named)
