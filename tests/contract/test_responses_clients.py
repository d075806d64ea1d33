"""OpenAI's Responses API through the stock library, against the real server process with a language model elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

from tests.contract.test_chat_clients import ARGUMENTS
from tests.realtime.chat_server import FIRST, ChatServer
from tests.realtime.product import Product

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}


@pytest.fixture
def client(product: Product) -> Iterator[openai.OpenAI]:
    """At the short root, which is what the library adds to a host."""
    with openai.OpenAI(api_key=product.keys["good"], base_url=f"{product.origin}/v1", max_retries=0) as client:
        yield client


def test_a_response(client: openai.OpenAI, elsewhere: ChatServer) -> None:
    response = client.responses.create(model="gpt-4o-mini", instructions="Be brief.", input="Are you there?")
    assert (response.output_text, response.status) == ("I am here.", "completed")
    assert response.usage
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    roles = [message["role"] for message in elsewhere.requests[-1]["messages"]]
    assert roles == ["system", "user"]


def test_a_stream(client: openai.OpenAI) -> None:
    with client.responses.stream(model="gpt-4o-mini", input="Are you there?") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == "I am here."


def test_a_function_is_called_and_its_output_told(client: openai.OpenAI) -> None:
    said: list[Any] = [{"role": "user", "content": "weather"}]
    with client.responses.stream(model="gpt-4o", input=said, tools=[WEATHER]) as stream:
        response = stream.get_final_response()
    (call,) = response.output
    assert isinstance(call, ResponseFunctionToolCall)
    assert (call.name, json.loads(call.arguments)) == ("weather", ARGUMENTS)
    said += response.output
    said.append({"type": "function_call_output", "call_id": call.call_id, "output": '{"degrees": 20}'})
    told = client.responses.create(model="gpt-4o", input=said, tools=[WEATHER])
    assert told.output_text == "It is 20 degrees."


class Day(BaseModel):
    name: str


def test_a_class_binds_the_answer(client: openai.OpenAI, elsewhere: ChatServer) -> None:
    client.responses.create(model="gpt-4o", input="Are you there?", text={"format": {"type": "json_object"}})
    assert elsewhere.requests[-1]["response_format"] == {"type": "json_object"}
    with pytest.raises(ValueError, match="I am here"):
        client.responses.parse(model="gpt-4o", input="Which day is it?", text_format=Day)
    shape = elsewhere.requests[-1]["response_format"]["json_schema"]
    assert (shape["name"], shape["strict"], shape["schema"]["required"]) == ("Day", True, ["name"])


def test_failures(client: openai.OpenAI, product: Product) -> None:
    with pytest.raises(openai.BadRequestError, match="not stored here") as stored:
        client.responses.create(model="gpt-4o", input="a", previous_response_id="resp_1")
    assert stored.value.param == "previous_response_id"
    with pytest.raises(openai.NotFoundError, match="not stored here"):
        client.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError) as missing:
        client.responses.create(model="nobody", input="a", stream=True)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.PermissionDeniedError):
        client.with_options(api_key=product.keys["elsewhere"]).responses.create(model="gpt-4o", input="a")


def test_a_stream_that_breaks_off(client: openai.OpenAI) -> None:
    *told, last = client.responses.create(model="gpt-4o", input="break it", stream=True)
    assert [event.delta for event in told if event.type == "response.output_text.delta"] == [f"{FIRST} "]
    assert last.type == "response.failed"
    assert last.response.error
    assert "broke" in last.response.error.message
