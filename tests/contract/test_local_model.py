"""The language model that comes with the server, through the real server and stock clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from voiceapp.catalogue.defaults import SMALL_MODEL
from voiceapp.engines.assistant.skills.unknown import QUESTION

MODEL = Path(SMALL_MODEL).stem
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Get the current weather in a given city", "parameters": CITY},
}


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(CHAT_MODEL_THREADS="1")


@pytest.fixture
def client(product: Product) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        api_key=product.keys["good"], base_url=f"{product.origin}/compatible-mode/v1", max_retries=0
    ) as client:
        yield client


def ask(client: openai.OpenAI, said: str, model: str = "gpt-4o-mini", **options: Any) -> Any:
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": said}], **options)


def test_the_usual_names_lead_to_skills_and_instructions_to_the_model(client: openai.OpenAI, product: Product) -> None:
    asked: Any = [{"role": "user", "content": "Who wrote Dune?"}]
    names = ("gpt-4o-mini", "qwen-plus", "assistant")
    for name in names:
        assert ask(client, "What is two plus two?", name).choices[0].message.content == "2 plus 2 is 4."
        assert ask(client, "Who wrote Dune?", name).choices[0].message.content == QUESTION[0]
    assert f"language model {MODEL}" not in product.log, "no process before the first call that needs it"
    instructed: Any = [{"role": "system", "content": "You are a helpful assistant."}, *asked]
    for name in names:
        done = client.chat.completions.create(model=name, messages=instructed, seed=1)
        assert done.choices[0].message.content not in ("", QUESTION[0])
    assert f"language model {MODEL}" in product.log
    assert ask(client, "What is two plus two?", MODEL, max_tokens=4).choices[0].finish_reason == "length"
    rows = product.rows("select distinct model from accounts_usagerecord order by model")
    assert [row["model"] for row in rows] == ["assistant", MODEL]


def test_a_schema_binds_the_reply(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "legs": {"enum": [2, 4, 8]}},
        "required": ["name", "legs"],
        "additionalProperties": False,
    }
    shape: Any = {"type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": schema}}
    found = json.loads(ask(client, "Describe a dog.", response_format=shape).choices[0].message.content)
    assert set(found) == {"name", "legs"}
    assert found["legs"] in (2, 4, 8)


def test_a_function_is_called_and_its_result_told(client: openai.OpenAI) -> None:
    said = "Is it raining in London?"
    (call,) = ask(client, said, tools=[WEATHER]).choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "London"})
    messages: Any = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
        {"role": "tool", "tool_call_id": call.id, "content": '{"sky": "light rain"}'},
    ]
    told = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=[WEATHER])
    assert told.choices[0].message.content == "sky: light rain."


@pytest.fixture
def langchain(product: Product) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-4o-mini",
        base_url=f"{product.origin}/compatible-mode/v1",
        api_key=SecretStr(product.keys["good"]),
        max_retries=0,
    )


def test_langchain_calls_a_function_and_tells_its_result(langchain: ChatOpenAI) -> None:
    @tool
    def get_weather(city: str) -> str:
        """Get the current weather in a given city"""
        return json.dumps({"sky": f"rain over {city}"})

    bound = langchain.bind_tools([get_weather])
    messages: list[BaseMessage] = [HumanMessage("Is it raining in London?")]
    called = bound.invoke(messages)
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "London"})
    told = bound.invoke([*messages, called, get_weather.invoke(call)])
    assert told.content == "sky: rain over London."
