"""What the native chat operations take, and what they answer."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.generation.conftest import MULTIMODAL, TEXT, Asker
from tests.generation.engine import INPUT_TOKENS, Obedient
from tests.outbound.test_client import serving
from voiceapp.accounts.models import UsageRecord
from voiceapp.engines.interfaces import ChatMessage, ToolCall

PNG = b"\x89PNG\r\n\x1a\n0123"
DATA = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
TOOL = {"type": "function", "function": {"name": "dim", "description": "Dims.", "parameters": {"type": "object"}}}


def with_choices(most: int) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "dim", "parameters": {"enum": [*range(most)]}}}


def shape(schema: object) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}


def refused(response: Any, status: int, code: str = "InvalidParameter") -> str:
    assert (response.status_code, response.json()["code"]) == (status, code), response.content
    return str(response.json()["message"])


async def test_a_message_is_answered_with_choices(ask: Asker) -> None:
    response = await ask.native("say: Hello |there.", result_format="message")
    assert response.status_code == 200
    assert response.json() == {
        "status_code": 200,
        "code": "",
        "message": "",
        "request_id": response["X-Request-ID"],
        "output": {
            "text": None,
            "finish_reason": None,
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello there."}}
            ],
        },
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": 2,
            "total_tokens": INPUT_TOKENS + 2,
            "prompt_tokens_details": {"cached_tokens": 2},
        },
    }


async def test_text_is_answered_with_text(ask: Asker) -> None:
    output = (await ask.native("say: Hello.", result_format="text")).json()["output"]
    assert output == {"text": "Hello.", "finish_reason": "stop"}


async def test_without_a_format_both_readings_find_their_answer(ask: Asker) -> None:
    output = (await ask.native("say: Hello.")).json()["output"]
    assert output["text"] == output["choices"][0]["message"]["content"] == "Hello."
    assert output["finish_reason"] == "stop"


async def test_a_prompt_follows_its_history(ask: Asker, engine: Obedient) -> None:
    given = {"prompt": "say: Hi.", "history": [{"user": "Hello", "bot": "Good day."}]}
    response = await ask.post(TEXT, {"model": "qwen-plus", "input": given})
    assert response.json()["output"]["text"] == "Hi."
    assert engine.asked[0].messages == (
        ChatMessage("user", "Hello"),
        ChatMessage("assistant", "Good day."),
        ChatMessage("user", "say: Hi."),
    )


async def test_a_prompt_besides_messages_is_the_newest(ask: Asker, engine: Obedient) -> None:
    given = {"messages": [{"role": "system", "content": "Be kind."}], "prompt": "say: Hi."}
    assert (await ask.post(TEXT, {"model": "qwen-plus", "input": given})).status_code == 200
    assert engine.asked[0].messages[-1] == ChatMessage("user", "say: Hi.")


async def test_parameters_reach_the_engine_by_their_names(ask: Asker, engine: Obedient) -> None:
    passed_on: dict[str, Any] = {
        "top_k": 20,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.5,
        "enable_thinking": False,
        "thinking_budget": 100,
        "logit_bias": {"12": -1},
        "enable_search": True,
        "parallel_tool_calls": True,
    }
    response = await ask.native(
        "say: Hi.", temperature=0.5, top_p=0.9, seed=3, max_tokens=5, kwargs={}, stop=["a", 5, [6, 7]], **passed_on
    )
    assert response.status_code == 200, response.content
    (request,) = engine.asked
    assert (request.temperature, request.top_p, request.seed, request.max_tokens) == (0.5, 0.9, 3, 5)
    assert request.extra == passed_on | {"stop": ["a"], "stop_token_ids": [5, 6, 7]}


async def test_it_gives_as_many_answers_as_were_asked_for(ask: Asker, engine: Obedient) -> None:
    response = await ask.native("say: a|b", n=3, seed=5, result_format="message")
    choices = response.json()["output"]["choices"]
    assert [(choice["index"], choice["message"]["content"]) for choice in choices] == [(0, "ab"), (1, "ab"), (2, "ab")]
    assert sorted(request.seed or 0 for request in engine.asked) == [5, 6, 7]
    assert response.json()["usage"]["input_tokens"] == INPUT_TOKENS
    assert response.json()["usage"]["output_tokens"] == 6


async def test_an_answer_ends_before_a_stop(ask: Asker, engine: Obedient) -> None:
    response = await ask.native("hold: one E|ND two", stop="END")
    assert response.json()["output"]["text"] == "one "
    assert response.json()["output"]["finish_reason"] == "stop"
    assert engine.closed == 1


async def test_an_answer_that_was_cut_says_so(ask: Asker) -> None:
    output = (await ask.native("say: a|b|c", max_tokens=2)).json()["output"]
    assert (output["text"], output["finish_reason"]) == ("ab", "length")
    output = (await ask.native("say: a|b|c", max_completion_tokens=1)).json()["output"]
    assert output["text"] == "a"


async def test_a_function_is_called_and_its_answer_read(ask: Asker, engine: Obedient) -> None:
    response = await ask.native('call: dim {"to": 5}', tools=[TOOL], tool_choice="auto", result_format="message")
    (choice,) = response.json()["output"]["choices"]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]
    assert call == {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "dim", "arguments": '{"to": 5}'},
    }
    assert engine.asked[0].tools == (TOOL,)
    messages = [
        {"role": "user", "content": "say: It is dim."},
        choice["message"],
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]
    response = await ask.post(TEXT, {"model": "qwen-plus", "input": {"messages": messages}})
    assert response.json()["output"]["text"] == "It is dim."
    assert engine.asked[1].messages[1:] == (
        ChatMessage("assistant", "", (ToolCall("call_1", "dim", '{"to": 5}'),)),
        ChatMessage("tool", "done", tool_call_id="call_1"),
    )


async def test_a_named_function_must_be_among_the_tools(ask: Asker) -> None:
    choice = {"type": "function", "function": {"name": "light"}}
    assert "'light'" in refused(await ask.native("say: a", tools=[TOOL], tool_choice=choice), 400)
    assert "there are no tools" in refused(await ask.native("say: a", tool_choice="required"), 400)
    choice["function"]["name"] = "dim"  # type: ignore[index]
    assert (await ask.native("say: a", tools=[TOOL], tool_choice=choice)).status_code == 200


async def test_thoughts_stand_beside_the_answer(ask: Asker) -> None:
    response = await ask.native("think: Hm.", enable_thinking=True, result_format="message")
    message = response.json()["output"]["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "Well.", "reasoning_content": "Hm."}


async def test_probabilities_are_given_where_asked_for(ask: Asker) -> None:
    response = await ask.native("say: a|b", logprobs=True, result_format="message")
    logprobs = response.json()["output"]["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in logprobs] == ["a", "b"]


async def test_tools_and_schemas_within_their_bounds_reach_the_engine(ask: Asker, engine: Obedient) -> None:
    tools = [with_choices(200)] * 5 + [TOOL] * 123
    form = shape({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"enum": [*range(200)]}}})
    assert (await ask.native("say: {}", tools=tools, response_format=form)).status_code == 200
    assert (len(engine.asked[0].tools), engine.asked[0].extra["response_format"]) == (128, form)


@pytest.mark.parametrize("written", [True, False])
async def test_the_format_text_is_as_good_as_none(ask: Asker, engine: Obedient, *, written: bool) -> None:
    form = {"type": "text"} if written else {"type": "json_object"}
    assert (await ask.native("say: {}", response_format=form)).status_code == 200
    assert ("response_format" in engine.asked[0].extra) is not written


async def test_other_engines_answers_are_put_into_json(ask: Asker, plain: Obedient) -> None:
    response = await ask.native('say: It "is"|\nso.', model="plain", response_format={"type": "json_object"})
    assert response.json()["output"]["text"] == r'{"answer": "It \"is\"\nso."}'
    response = await ask.native("say: ", model="plain", response_format={"type": "json_object"})
    assert response.json()["output"]["text"] == '{"answer": ""}'
    assert "response_format" not in plain.asked[0].extra


async def test_an_engine_that_cannot_is_not_asked_to(ask: Asker, plain: Obedient) -> None:
    image = [{"text": "see: "}, {"image": "https://example.org/a.png"}]
    said = refused(await ask.native(image, MULTIMODAL, model="plain"), 400)
    assert "input.messages.0.content holds an image" in said
    assert "does not accept images" in said
    assert "functions" in refused(await ask.native("say: a", model="plain", tools=[TOOL], tool_choice="required"), 400)
    assert "schema" in refused(await ask.native("say: a", model="plain", response_format=shape({})), 400)
    assert plain.asked == []


async def test_without_the_engines_word_usage_is_estimated(ask: Asker) -> None:
    usage = (await ask.native("say: eight by", model="plain")).json()["usage"]
    assert usage == {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6}


async def test_parts_are_answered_with_parts(ask: Asker, engine: Obedient) -> None:
    said = [{"text": "see: "}, {"image": DATA}, {"image": "data:image/png;base64,AA=="}]
    response = await ask.native(said, MULTIMODAL)
    output = response.json()["output"]
    assert output["text"] is None
    assert output["choices"][0]["message"] == {"role": "assistant", "content": [{"text": "2 images"}]}
    (message,) = engine.asked[0].messages
    assert message.content == "see: "
    assert message.parts[1] == {"type": "image_url", "image_url": {"url": DATA}}


async def test_an_image_is_fetched_here_and_not_from_inside(ask: Asker, engine: Obedient, settings: Settings) -> None:
    called: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        called.append(request.path)
        return web.Response(body={"/a.png": PNG, "/large": PNG + bytes(5_000_000)}.get(request.path, b"{}"))

    async with serving(answer) as port:
        said = [{"text": "see: "}, {"image": f"http://127.0.0.1:{port}/a.png"}]
        assert "public address" in refused(await ask.native(said, MULTIMODAL), 400)
        assert (called, engine.asked) == ([], [])

        settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]
        assert (await ask.native(said, MULTIMODAL)).status_code == 200
        assert engine.asked[0].messages[0].parts[1] == {"type": "image_url", "image_url": {"url": DATA}}
        for path, words in (("secrets", "no PNG, JPEG or WebP"), ("large", "larger than 5 MB")):
            said = [{"image": f"http://127.0.0.1:{port}/{path}"}]
            response = await ask.native(said, MULTIMODAL)
            assert (response.status_code, words in response.json()["message"]) == (400, True)
        said = [{"image": f"http://127.0.0.1:{port}/a.png"}] * 17
        assert "name 17 images" in refused(await ask.native(said, MULTIMODAL), 400)
    assert (called, len(engine.asked)) == (["/a.png", "/secrets", "/large"], 1)


async def test_images_are_fetched_at_once_and_are_bounded_together(
    ask: Asker, engine: Obedient, settings: Settings
) -> None:
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    both = asyncio.Barrier(2)

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path.startswith("/pair"):
            await both.wait()
        return web.Response(body=PNG + bytes(2_600_000) if request.path == "/large" else PNG)

    def image(path: str) -> dict[str, str]:
        return {"image": f"http://127.0.0.1:{port}/{path}"}

    async with serving(answer) as port:
        assert (await ask.native([image("pair-1"), image("pair-2")], MULTIMODAL)).status_code == 200
        assert [part["image_url"] for part in engine.asked[0].messages[0].parts] == [{"url": DATA}] * 2
        assert (await ask.native([image("large"), image("small")], MULTIMODAL)).status_code == 200
        refusal = refused(
            await ask.native([image("large"), image("large")], MULTIMODAL), 400, "InvalidParameter.DataFetch"
        )
        assert "larger than 5 MB together" in refusal


async def test_parts_that_are_all_text_are_plain_text(ask: Asker, plain: Obedient) -> None:
    response = await ask.native([{"text": "say: one"}, {"type": "text", "text": "two"}], MULTIMODAL, model="plain")
    assert response.json()["output"]["choices"][0]["message"]["content"] == [{"text": "one\ntwo"}]
    assert plain.asked[0].messages == (ChatMessage("user", "say: one\ntwo"),)


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"audio": "https://example.org/a.wav"}, "audio"),
        ({"video": ["https://example.org/a.png"]}, "video"),
        ({"image": "file:///etc/passwd"}, "address"),
        ({"type": "text", "image": "https://example.org/a.png"}, "neither"),
        ({}, "neither"),
    ],
)
async def test_a_part_that_nobody_reads_is_refused_by_its_place(ask: Asker, part: dict[str, Any], word: str) -> None:
    said = refused(await ask.native([{"text": "see: "}, part], MULTIMODAL), 400)
    assert "input.messages.0.content.1" in said
    assert word in said


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"temperature": 2}, "parameters.temperature must be less than 2."),
        ({"temperature": -0.1}, "parameters.temperature must be greater than or equal to 0."),
        ({"top_p": 0}, "parameters.top_p must be greater than 0."),
        ({"top_k": 1.5}, "parameters.top_k must be an integer."),
        ({"n": 5}, "parameters.n must be less than or equal to 4."),
        ({"n": 2, "result_format": "text"}, "parameters.n above 1 needs result_format message."),
        ({"max_tokens": 0}, "parameters.max_tokens must be greater than or equal to 1."),
        ({"result_format": "html"}, "parameters.result_format must be 'text' or 'message'."),
        ({"incremental_output": "yes"}, "parameters.incremental_output must be true or false."),
        ({"tools": [{"type": "function"}]}, "parameters.tools.0.function is required."),
        ({"tools": [TOOL] * 129}, "parameters.tools may have at most 128 items."),
        (
            {"tools": [with_choices(201)]},
            "parameters.tools is refused: in tools[0], the schema has more than 200 members of enum.",
        ),
        (
            {"tools": [with_choices(200)] * 5 + [with_choices(1)]},
            "parameters.tools is refused: all tools together have more than 1,000 enum members.",
        ),
        (
            {"response_format": shape({"$ref": "https://example.com/a"})},
            "parameters.response_format.json_schema is refused: $ref 'https://example.com/a' does not lead to a schema "
            "inside this one.",
        ),
        (
            {"response_format": shape(7)},
            "parameters.response_format.json_schema is refused: its schema must be an object.",
        ),
    ],
)
async def test_a_value_out_of_range_is_named(ask: Asker, parameters: dict[str, Any], message: str) -> None:
    assert refused(await ask.native("say: a", **parameters), 400) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "input needs messages, or a prompt."),
        ({"messages": []}, "input.messages holds no message."),
        ({"messages": [{"role": "user", "content": "a"}] * 2001}, "input.messages may have at most 2,000 items."),
        ({"prompt": ""}, "input.prompt is empty."),
        ({"messages": [{"role": "user"}]}, "input.messages.0.content is required."),
        ({"messages": [{"role": "user", "content": "a"}], "history": []}, "input has messages and history;"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "input.messages.0.role must be 'system',"),
    ],
)
async def test_an_input_that_asks_nothing_is_refused(ask: Asker, given: dict[str, Any], message: str) -> None:
    said = refused(await ask.post(TEXT, {"model": "qwen-plus", "input": given}), 400)
    assert said.startswith(message)


async def test_failures_have_their_status(ask: Asker) -> None:
    assert "'nobody'" in refused(await ask.native("say: a", model="nobody"), 404, "ModelNotFound")
    assert refused(await ask.native("fail: "), 503, "ModelUnavailable") == "It is out of order."
    assert refused(await ask.native("break: a"), 503, "ModelUnavailable") == "It stopped in the middle."
    assert "secret" not in refused(await ask.native("bug: a"), 500, "InternalError")


@pytest.mark.parametrize("path", [TEXT, MULTIMODAL])
@pytest.mark.parametrize("header", ["X-DashScope-Async", "x-service-async"])
async def test_it_makes_no_tasks(ask: Asker, header: str, path: str) -> None:
    response = await ask.post(path, {"model": "qwen-plus", "input": {"prompt": "say: a"}}, **{header: "enable"})
    assert "asynchronous" in refused(response, 403, "AccessDenied")


async def test_a_key_for_other_models_is_refused(ask: Asker, alice: Member) -> None:
    alice.row.allowed_models = ["plain"]
    await sync_to_async(alice.row.save)()
    refused(await ask.native("say: a"), 403, "AccessDenied")
    assert (await ask.native("say: a", model="plain")).status_code == 200


async def test_what_was_used_is_in_the_ledger_when_the_answer_comes(ask: Asker) -> None:
    response = await ask.native("say: a|b")
    rows = UsageRecord.objects.filter(request_id=response["X-Request-ID"]).values_list(
        "family", "model", "unit", "quantity"
    )
    assert {row async for row in rows} == {
        ("chat", "obedient", "input_tokens", INPUT_TOKENS),
        ("chat", "obedient", "output_tokens", 2),
    }


async def test_what_was_used_before_a_failure_is_in_the_ledger_too(ask: Asker) -> None:
    response = await ask.native("break: four|four")
    rows = UsageRecord.objects.filter(request_id=response["X-Request-ID"], unit="output_tokens")
    assert [row.quantity async for row in rows] == [2]
