"""Tools of real MCP servers, by stdio and HTTP, for OpenAI's client and for everyone; servers that hang or lie."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, InternalServerError
from pytest_django.fixtures import Settings

from tests.agents.conftest import Apply
from tests.agents.conftest import apply as apply
from tests.ports import free_port
from tests.realtime import mcp_server
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.doors import guest, member
from tests.realtime.product import Product
from tests.realtime.talker import call
from voiceapp.catalogue.mcp_servers import McpServer, read_mcp_servers
from voiceapp.engines.mcp.connection import connections
from voiceapp.engines.mcp.replies import offered
from voiceapp.errors import EngineUnavailable

PATIENCE_S = 40.0
TIMEOUT_S = 6.0
SCRIPT = str(Path(mcp_server.__file__))


@pytest.fixture(scope="module")
def http_server() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, SCRIPT, str(port)])
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)  # another process: nothing here is told when it listens
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """Port of a server that accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture(scope="module")
def product(
    serve: Serve, chat_server: ChatServer, http_server: str, silent: int, tmp_path_factory: pytest.TempPathFactory
) -> Product:
    home = f"""
        command = [{json.dumps(sys.executable)}, {json.dumps(SCRIPT)}]
        allow = ["add", "hang", "huge", "process", "quit", "refuse"]
        ask = ["unlock"]
        timeout_s = {TIMEOUT_S}
    """
    away = f'[away]\nurl = {json.dumps(http_server)}\nallow = ["add", "hang", "huge"]\ntimeout_s = {TIMEOUT_S}'
    open_ = (
        f'[open]\nurl = {json.dumps(http_server)}\nallow = ["shout"]\nask = ["unlock"]\nalways = true\npublic = true'
    )
    asking = '[asking]\nurl = "http://127.0.0.1:9/mcp"\nask = ["*"]'
    gone = '[gone]\nurl = "http://127.0.0.1:9/mcp"\nallow = ["*"]'
    path = tmp_path_factory.mktemp("mcp") / "servers.toml"
    hung = f'[hung]\nurl = "http://127.0.0.1:{silent}/mcp"\nallow = ["*"]\nalways = true\ntimeout_s = 30'
    path.write_text(f"[home]{home}\n{away}\nalways = true\n{open_}\n{asking}\n{gone}\n{hung}\n")
    chat = {"CHAT_BASE_URL": chat_server.base_url, "CHAT_API_KEY": KEY, "CHAT_MODEL": "bard"}
    return serve(**chat, MCP_SERVERS=str(path), PUBLIC_PAGE="guest")


class Client:
    """OpenAI's client, in writing."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.events: list[Any] = []

    async def until(self, kind: str) -> Any:
        async for event in self.connection:
            self.events.append(event)
            if event.type in (kind, "error"):
                return event
        raise AssertionError(f"no {kind}")

    async def use(self, label: str, *, told: str = "completed", **tool: Any) -> None:
        tools = [{"type": "mcp", "server_label": label, **tool}]
        await self.connection.session.update(
            session={"type": "realtime", "output_modalities": ["text"], "tools": tools}
        )
        assert (await self.until(f"mcp_list_tools.{told}")).type == f"mcp_list_tools.{told}"

    async def ask(self, words: str) -> Any:
        content = [{"type": "input_text", "text": words}]
        await self.connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        await self.connection.response.create()
        return (await self.until("response.done")).response


@asynccontextmanager
async def talking(product: Product, key: str = "") -> AsyncIterator[Client]:
    client = AsyncOpenAI(
        api_key=key or product.keys["good"], websocket_base_url=f"ws://{product.address}/v1", max_retries=0
    )
    async with asyncio.timeout(PATIENCE_S), client.realtime.connect(model="voice") as connection:
        yield Client(connection)


def said(response: Any) -> str:
    return str(response.output[-1].content[0].text)


@pytest.mark.parametrize("label", ["home", "away"])
async def test_a_model_calls_a_tool_and_the_client_sees_it(product: Product, label: str) -> None:
    async with talking(product) as client:
        await client.use(label, require_approval="never")
        (listed,) = [event.item for event in client.events if event.type == "conversation.item.done"]
        assert (listed.type, listed.server_label) == ("mcp_list_tools", label)
        assert {tool.name for tool in listed.tools} >= {"add", "hang"}
        assert "secret" not in [tool.name for tool in listed.tools]

        response = await client.ask('Call the tool add with {"a": 19, "b": 23}')

        made = response.output[0]
        assert (made.type, made.server_label, made.name, made.output) == ("mcp_call", label, "add", "42")
        assert said(response) == "The tool said: 42"
        kinds = [event.type for event in client.events if "mcp_call" in event.type]
        assert kinds == [
            "response.mcp_call_arguments.done",
            "response.mcp_call.in_progress",
            "response.mcp_call.completed",
        ]
        # It is part of the conversation: the next reply knows it.
        assert (await client.ask("Are you there?")).status == "completed"


@pytest.mark.parametrize("approve", [True, False])
async def test_what_is_asked_for_runs_only_when_it_is_approved(product: Product, approve: bool) -> None:
    async with talking(product) as client:
        await client.use("home", require_approval="never")  # the operator wants it asked all the same
        (asked,) = (await client.ask("Call the tool unlock with {}")).output
        assert (asked.type, asked.name) == ("mcp_approval_request", "unlock")
        await client.connection.conversation.item.create(
            item={"type": "mcp_approval_response", "id": "a1", "approval_request_id": asked.id, "approve": approve}
        )
        response = (await client.until("response.done")).response
        calls = [item.output for item in response.output if item.type == "mcp_call"]
        assert calls == (["The door is open."] if approve else [])
        told = "The door is open." if approve else "The user does not allow this call."
        assert said(response) == f"The tool said: {told}"


@pytest.mark.parametrize("label", ["home", "away"])
@pytest.mark.parametrize("tool", ["hang", "huge"])
async def test_a_server_that_hangs_or_says_too_much_costs_a_bounded_time(
    product: Product, label: str, tool: str
) -> None:
    async with talking(product) as client:
        await client.use(label, require_approval="never")
        began = time.monotonic()
        response = await client.ask(f"Call the tool {tool} with {{}}")
        assert time.monotonic() - began < PATIENCE_S / 2
        assert len(response.output[0].output or "") <= 20_000
        assert response.status == "completed"
        assert said(await client.ask('Call the tool add with {"a": 1, "b": 2}')) == "The tool said: 3"


async def test_a_program_that_dies_is_started_again(product: Product) -> None:
    async with talking(product) as client:
        await client.use("home", require_approval="never")
        response = await client.ask("Call the tool quit with {}")
        assert response.output[0].error.message
        assert said(await client.ask('Call the tool add with {"a": 1, "b": 2}')) == "The tool said: 3"


async def test_a_server_that_is_gone_is_reported_and_the_conversation_goes_on(product: Product) -> None:
    async with talking(product) as client:
        await client.use("gone", told="failed")
        assert said(await client.ask("Are you there?")) == "I am here."


async def test_a_call_that_is_refused_leaves_the_program_to_the_others(product: Product) -> None:
    async with talking(product) as client:
        await client.use("home", require_approval="never")
        before = said(await client.ask("Call the tool process with {}"))
        response = await client.ask("Call the tool refuse with {}")
        assert "Not today." in response.output[0].error.message
        assert said(await client.ask("Call the tool process with {}")) == before


async def test_an_approval_holds_for_the_server_that_asked(product: Product) -> None:
    async with talking(product) as client:
        await client.use("home")
        (asked,) = (await client.ask("Call the tool unlock with {}")).output
        await client.use("open", require_approval="never")
        await client.connection.conversation.item.create(
            item={"type": "mcp_approval_response", "id": "a1", "approval_request_id": asked.id, "approve": True}
        )
        response = (await client.until("response.done")).response
        assert response.output[0].error.message == "This tool is not there any more."


async def test_an_agent_calls_the_tools_that_it_names(product: Product, apply: Apply) -> None:
    _, log = apply(product, desk='tools = "home/add, away"', lobby='tools = "nothing"')
    assert "MCP_SERVERS has no nothing" in log
    asked = "Call the tool {} with {{}}"
    for model, tool, is_called in (("desk", "add", True), ("desk", "refuse", False), ("desk", "shout", False)):
        async with call(product.url, product.keys["good"], model=model) as talker:
            await talker.send("session.update", session={"modalities": ["text"]})  # what a tool says may be long
            await talker.ask(asked.format(tool))
            output = (await talker.wait("response.done"))["response"]["output"]
            assert ([item["name"] for item in output if item["type"] == "mcp_call"] == [tool]) == is_called


def of(label: str, **more: Any) -> dict[str, Any]:
    return {"type": "mcp", "server_label": label, **more}


def client_of(product: Product) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=product.keys["good"], base_url=f"{product.origin}/v1", max_retries=0, timeout=PATIENCE_S)


@pytest.mark.parametrize("label", ["home", "away"])
async def test_a_chat_completion_calls_tools_that_need_no_approval(product: Product, label: str) -> None:
    client = client_of(product)
    for words, told in (
        ('add with {"a": 19, "b": 23}', "The tool said: 42"),
        ("unlock with {}", None),  # the operator wants it asked: it is not offered, and called as any other function
    ):
        asked: dict[str, Any] = {"model": "gpt-4o", "tools": [of(label, require_approval="never")]}
        asked["messages"] = [{"role": "user", "content": f"Call the tool {words}"}]
        whole = await client.chat.completions.create(**asked)
        stream = await client.chat.completions.create(**asked, stream=True)
        chunks = [chunk.choices[0] async for chunk in stream]
        pieces = [choice.delta.content or "" for choice in chunks]
        assert (whole.choices[0].message.content, "".join(pieces) or None) == (told, told)
        ends = [choice.finish_reason for choice in chunks if choice.finish_reason]
        assert ends == [whole.choices[0].finish_reason] == ["stop" if told else "tool_calls"]


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (of("home"), "cannot be approved in chat"),
        (of("other", require_approval="never"), "there is no MCP server"),
        (of("away", require_approval="never", authorization="mine"), "authorization is the operator's"),
        (of("asking", require_approval="never"), "have to be approved"),
        ({"type": "function"}, "tools.0.function is required"),
    ],
)
async def test_chat_refuses_other_tools(product: Product, tool: Any, message: str) -> None:
    said: Any = [{"role": "user", "content": "Are you there?"}]
    with pytest.raises(BadRequestError, match=message) as refused:
        await client_of(product).chat.completions.create(model="gpt-4o", messages=said, tools=[tool])
    assert str(refused.value.param).startswith("tools")


async def test_chat_says_that_a_server_is_gone(product: Product) -> None:
    said: Any = [{"role": "user", "content": "Are you there?"}]
    tools: Any = [of("gone", require_approval="never")]
    with pytest.raises(InternalServerError, match="MCP server gone cannot be reached") as failed:
        await client_of(product).chat.completions.create(model="gpt-4o", messages=said, tools=tools)
    assert failed.value.status_code == 503


async def respond(client: AsyncOpenAI, said: Any, *tools: Any) -> tuple[Any, list[str]]:
    """The response, which is the same whole and streamed, and the types of the stream's events about tools."""
    whole = await client.responses.create(model="gpt-4o", input=said, tools=tools)
    async with client.responses.stream(model="gpt-4o", input=said, tools=tools) as stream:
        kinds = [event.type.removeprefix("response.") async for event in stream if "mcp" in event.type]
        response = await stream.get_final_response()
    assert [item.type for item in whole.output] == [item.type for item in response.output]
    return response, kinds


async def test_a_response_lists_and_calls_tools(product: Product) -> None:
    client = client_of(product)
    said: list[Any] = [{"role": "user", "content": 'Call the tool add with {"a": 19, "b": 23}'}]
    response, kinds = await respond(client, said, of("home", require_approval="never"), of("gone"))
    listed, gone, made, message = response.output
    assert {tool.name for tool in listed.tools} >= {"add", "unlock"}
    assert (gone.type, gone.error) == ("mcp_list_tools", "The MCP server gone cannot be reached.")
    assert (made.type, made.server_label, made.name, made.output) == ("mcp_call", "home", "add", "42")
    assert message.content[0].text == response.output_text == "The tool said: 42"
    assert kinds == [
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "mcp_list_tools.in_progress",
        "mcp_list_tools.failed",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
    ]
    said += [item.model_dump() for item in response.output]
    response, _ = await respond(client, [*said, {"role": "user", "content": "Are you there?"}], of("home"))
    assert [item.type for item in response.output] == ["message"], "what was listed is not listed again"


async def test_a_response_says_that_a_tool_failed(product: Product) -> None:
    said = [{"role": "user", "content": "Call the tool refuse with {}"}]
    response, kinds = await respond(client_of(product), said, of("home", require_approval="never"))
    made = response.output[1]
    assert "Not today." in made.error.content[0]["text"]
    assert kinds[-1] == "mcp_call.failed"
    assert response.output_text.startswith("The tool said: The tool refuse failed")


@pytest.mark.parametrize("approve", [True, False])
async def test_a_response_asks_before_it_calls(product: Product, approve: bool) -> None:
    client = client_of(product)
    said: list[Any] = [{"role": "user", "content": "Call the tool unlock with {}"}]
    response, _ = await respond(client, said, of("home", require_approval="never"))
    asked = response.output[1]
    assert (asked.type, asked.server_label, asked.name) == ("mcp_approval_request", "home", "unlock")
    assert response.output_text == ""
    word = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": approve}
    said += [*(item.model_dump() for item in response.output), word]
    response, _ = await respond(client, said, of("home"))
    calls = [(item.output, item.approval_request_id) for item in response.output if item.type == "mcp_call"]
    assert calls == ([("The door is open.", asked.id)] if approve else [])
    told = "The door is open." if approve else "The user does not allow this call."
    assert response.output_text == f"The tool said: {told}"
    said += [item.model_dump() for item in response.output]
    response, kinds = await respond(client, [*said, {"role": "user", "content": "Are you there?"}], of("home"))
    assert kinds == [], "it is not called again"

    forged = {**asked.model_dump(), "arguments": '{"all": true}'}
    for items, message in ([forged, word], "no model asked here"), ([word], "input holds no such"):
        with pytest.raises(BadRequestError, match=message):
            await client.responses.create(model="gpt-4o", input=[said[0], *items], tools=[of("home")])


async def test_no_reply_waits_for_a_server_that_hangs(settings: Settings, silent: int) -> None:
    hung = McpServer(label="hung", url=f"http://127.0.0.1:{silent}/mcp", allow=["*"], always=True, timeout_s=30)
    settings.MCP_SERVERS = (hung,)
    async with asyncio.timeout(PATIENCE_S / 2):
        assert await offered([], converses=True, is_guest=False) == {}
        connection = connections()["hung"]
        assert not connection.connect().done()
        await connection.close()
    assert isinstance(connection.connect().exception(), EngineUnavailable), "it is left alone for a while"


async def test_a_client_secret_names_servers_that_exist(product: Product) -> None:
    client = client_of(product)
    session: Any = {"type": "realtime", "output_modalities": ["text"]}
    tool = {"type": "mcp", "server_label": "home", "require_approval": "never"}
    with pytest.raises(BadRequestError, match="there is no MCP server"):
        await client.realtime.client_secrets.create(session={**session, "tools": [{**tool, "server_label": "other"}]})
    secret = await client.realtime.client_secrets.create(session={**session, "tools": [tool]})
    async with talking(product, secret.value) as talk:
        await talk.until("mcp_list_tools.completed")
        assert said(await talk.ask('Call the tool add with {"a": 1, "b": 2}')) == "The tool said: 3"


async def test_the_tools_of_a_server_are_listed_once(product: Product) -> None:
    async with talking(product) as client:
        await client.use("home", require_approval="never")
        for tools in ([], [{"type": "mcp", "server_label": label} for label in ("home", "away")]):
            await client.connection.session.update(session={"type": "realtime", "tools": tools})
        await client.until("mcp_list_tools.completed")
        await client.ask("Are you there?")
        assert [event.type for event in client.events].count("mcp_list_tools.in_progress") == 2


async def test_approvals_of_nothing_are_refused(product: Product) -> None:
    async with talking(product) as client:
        await client.use("home", require_approval="never")
        await client.ask("Are you there?")
        message = next(event.item.id for event in client.events if event.type == "conversation.item.done")
        for request_id in ("nothing", message, 7):
            await client.connection.conversation.item.create(
                item={"type": "mcp_approval_response", "id": "a1", "approval_request_id": request_id, "approve": True}
            )
            assert (await client.until("response.done")).type == "error"


@pytest.mark.parametrize(
    "tool",
    [
        {"server_label": "other"},
        {"server_label": "away", "server_url": "http://169.254.169.254/mcp"},
        {"server_label": "away", "authorization": "mine"},
        {"server_label": "away", "connector_id": "connector_gmail"},
        {"server_label": "away", "allowed_tools": 7},
        {"server_label": "away", "require_approval": "perhaps"},
        {},
    ],
)
async def test_no_other_server_is_called(product: Product, http_server: str, tool: dict[str, Any]) -> None:
    async with talking(product) as client:
        for given in (tool, {"server_label": "away", "server_url": http_server, "allowed_tools": ["add"]}):
            await client.connection.session.update(session={"type": "realtime", "tools": [{"type": "mcp", **given}]})
        event = await client.until("session.updated")
        assert (event.type, event.error.param.startswith("session.tools[0]")) == ("error", True)
        assert (await client.until("session.updated")).session.tools[0].server_label == "away"


async def test_what_the_operator_always_offers_is_called_in_any_conversation(
    product: Product, chat_server: ChatServer
) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask('Call the tool add with {"a": 2, "b": 3}')
        done = (await talker.wait("response.done"))["response"]
        assert [item["type"] for item in done["output"]] == ["mcp_call", "message"]
        assert done["output"][1]["content"][0]["transcript"] == "The tool said: 5"
        chat_server.requests.clear()
        await talker.ask("What is 17 times 23?")
        (sum_,) = (await talker.wait("response.done", count=2))["response"]["output"]
        assert sum_["author"]["kind"] == "skill", "skills come before the operator's tools"
        assert chat_server.requests == []


async def test_guests_are_offered_what_is_public_and_name_no_server(product: Product) -> None:
    for visitor, calls in (await guest(product), ["shout"]), (await member(product), ["add", "shout"]):
        async with call(product.page_url, headers=visitor.headers, origin=visitor.origin) as talker:
            called = []
            for count, words in enumerate(('add with {"a": 2, "b": 3}', 'shout with {"word": "hey"}'), start=1):
                await talker.ask(f"Call the tool {words}")
                done = (await talker.wait("response.done", count=count))["response"]
                called += [item["name"] for item in done["output"] if item["type"] == "mcp_call"]
            assert called == calls
            await talker.send("session.update", session={"approves_tools": True})
            await talker.ask("Call the tool unlock with {}")
            done = (await talker.wait("response.done", count=3))["response"]
            asked = [item["type"] for item in done["output"] if item["type"] == "mcp_approval_request"]
            assert asked == (["mcp_approval_request"] if "add" in calls else [])
            named = {"type": "mcp", "server_label": "home"}
            await talker.send("session.update", session={"tools": [named]})
            told, count = ("session.updated", 2) if "add" in calls else ("error", 1)
            assert (await talker.wait(told, count=count))["type"] == told


def test_what_is_wrong_with_a_file_is_told_without_its_secrets(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    path.write_text('[home]\nurl = "https://example.org"\nheaders = { a = "hunter2" }\n')
    assert [server.label for server in read_mcp_servers(path)] == ["home"]
    path.write_text('[home]\nurl = "https://example.org"\nheaders = "hunter2"\n')
    with pytest.raises(ValueError, match="headers") as refused:
        read_mcp_servers(path)
    assert "hunter2" not in str(refused.value)
