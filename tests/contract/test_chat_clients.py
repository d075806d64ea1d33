"""Chat through the client libraries that exist, against the real server process with a language model elsewhere; the
embedded assistant has its own name."""

from __future__ import annotations

import base64
import json
from http import HTTPStatus
from typing import Any

import dashscope
import openai
import pytest
from dashscope.aigc.generation import AioGeneration
from dashscope.v2.errors import APIStatusError

from tests.realtime.chat_server import FIRST, ChatServer
from tests.realtime.product import Product

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ARGUMENTS = {"city": "Paris"}
EMBEDDED = "embedded-retrieval"
QUESTION, ANSWER = "Are you there?", "I am here."


def user(text: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


# ── The 1.x library ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_embedded_assistant_replies(old: dict[str, Any], compatible: openai.OpenAI) -> None:
    asked = user("How do I interrupt it?")
    answer = dashscope.Generation.call(EMBEDDED, messages=asked, **old)
    assert answer.output.text.endswith("or say stop.")
    stream = compatible.chat.completions.create(model=EMBEDDED, messages=asked, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == answer.output.text
    shaped = compatible.chat.completions.create(model=EMBEDDED, messages=asked, response_format={"type": "json_object"})
    assert json.loads(shaped.choices[0].message.content or "")["answer"]
    wishes: Any = {"messages": user("weather"), "tools": [TOOL], "tool_choice": "required"}
    assert "functions" in dashscope.Generation.call(EMBEDDED, **wishes, **old).message
    with pytest.raises(openai.BadRequestError, match="functions"):
        compatible.chat.completions.create(model=EMBEDDED, **wishes)


def test_generation_of_1x(old: dict[str, Any]) -> None:
    answer = dashscope.Generation.call("qwen-plus", messages=user(QUESTION), result_format="message", **old)
    assert answer.status_code == HTTPStatus.OK, answer
    assert answer.output.choices[0].message.content == ANSWER
    assert answer.output.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer.request_id


def test_a_prompt_of_1x(old: dict[str, Any]) -> None:
    answer = dashscope.Generation.call("qwen-turbo", prompt=QUESTION, **old)
    assert answer.output.text == ANSWER
    assert answer.output.finish_reason == "stop"


@pytest.mark.parametrize("form", ["text", "message", None])
@pytest.mark.parametrize("incremental", [True, False, None])
def test_a_stream_of_1x(old: dict[str, Any], form: str | None, incremental: bool | None) -> None:
    frames = list(
        dashscope.Generation.call(
            "qwen-plus",
            messages=user(QUESTION),
            stream=True,
            **({"result_format": form} if form else {}),
            **({} if incremental is None else {"incremental_output": incremental}),
            **old,
        )
    )
    assert {frame.status_code for frame in frames} == {HTTPStatus.OK}
    if form == "message":
        texts = [frame.output.choices[0].message.content for frame in frames]
        reasons = [frame.output.choices[0].finish_reason for frame in frames]
    else:
        texts = [frame.output.text for frame in frames]
        reasons = [frame.output.finish_reason for frame in frames]
    whole = "".join(texts) if incremental else texts[-1]
    assert whole == ANSWER
    assert len(whole) == len(dashscope.Generation.call("qwen-plus", messages=user(QUESTION), **old).output.text)
    assert set(reasons[:-1]) == {"null"}
    assert reasons[-1] == "stop"
    assert all(frame.usage.total_tokens for frame in frames)


@pytest.mark.parametrize("incremental", [True, False])
def test_several_answers_of_1x(old: dict[str, Any], incremental: bool) -> None:
    texts = {0: "", 1: ""}
    for frame in dashscope.Generation.call(
        "qwen-plus", messages=user(QUESTION), n=2, stream=True, incremental_output=incremental,
        result_format="message", **old,
    ):  # fmt: skip
        for choice in frame.output.choices:
            text = choice["message"]["content"]  # of the last frame the library makes plain dictionaries
            texts[choice["index"]] = texts[choice["index"]] + text if incremental else text
    assert texts[0] == ANSWER
    assert texts[0] == texts[1]


async def test_async_calls_of_1x(old: dict[str, Any]) -> None:
    answer = await AioGeneration.call("qwen-plus", messages=user(QUESTION), **old)
    assert answer.output.text == ANSWER
    frames = await AioGeneration.call("qwen-plus", messages=user(QUESTION), stream=True, **old)
    texts = [frame.output.text async for frame in frames]
    assert texts[-1] == answer.output.text


def test_multimodal_conversation_of_1x(old: dict[str, Any]) -> None:
    messages = user([{"text": QUESTION}])
    answer = dashscope.MultiModalConversation.call("qwen-vl-plus", messages=messages, **old)
    assert answer.status_code == HTTPStatus.OK, answer
    assert answer.output.choices[0].message.content[0]["text"] == ANSWER
    for incremental in (False, True):
        pieces = [
            frame.output.choices[0].message.content
            for frame in dashscope.MultiModalConversation.call(
                "qwen-vl-plus", messages=messages, stream=True, incremental_output=incremental, **old
            )
        ]
        texts = ["".join(part["text"] for part in parts) for parts in pieces]
        assert ("".join(texts) if incremental else max(texts, key=len)) == ANSWER


def test_errors_of_1x(old: dict[str, Any]) -> None:
    answer = dashscope.Generation.call("nobody", prompt="a", **old)
    assert (answer.status_code, answer.code) == (HTTPStatus.NOT_FOUND, "ModelNotFound")
    (frame,) = dashscope.Generation.call("nobody", prompt="a", stream=True, **old)
    assert (frame.status_code, frame.code) == (HTTPStatus.NOT_FOUND, "ModelNotFound")
    answer = dashscope.Generation.call("qwen-plus", prompt="a", **old | {"api_key": "sk-wrong"})
    assert (answer.status_code, answer.code) == (HTTPStatus.UNAUTHORIZED, "InvalidApiKey")
    answer = dashscope.Generation.call("qwen-plus", prompt="a", temperature=3.0, **old)
    assert answer.message == "parameters.temperature must be less than 2."


def test_a_stream_that_breaks_off_in_1x(old: dict[str, Any]) -> None:
    *frames, last = dashscope.Generation.call("qwen-plus", prompt="break it", stream=True, **old)
    assert frames
    assert last.code == "ModelUnavailable"
    assert last.message
    assert last.status_code != HTTPStatus.OK


def test_functions_of_1x(old: dict[str, Any]) -> None:
    messages = user("weather")
    answer = dashscope.Generation.call("qwen-plus", messages=messages, tools=[TOOL], result_format="message", **old)
    reply = answer.output.choices[0].message
    assert answer.output.choices[0].finish_reason == "tool_calls"
    assert json.loads(reply.tool_calls[0]["function"]["arguments"]) == ARGUMENTS
    frames = list(
        dashscope.Generation.call(
            "qwen-plus", messages=messages, tools=[TOOL], result_format="message", stream=True, **old
        )
    )
    call = frames[-1].output.choices[0].message.tool_calls[0]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("call_7", ARGUMENTS)
    messages += [reply, {"role": "tool", "tool_call_id": call["id"], "content": '{"degrees": 20}'}]
    answer = dashscope.Generation.call("qwen-plus", messages=messages, tools=[TOOL], result_format="message", **old)
    assert answer.output.choices[0].message.content == "It is 20 degrees."


# ── The 2.x library ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_completions_of_2x(new: dashscope.Client) -> None:
    answer = new.chat.completions.create(model="qwen-plus", messages=user(QUESTION), n=2, stop=["never said"])
    assert answer.output_text == ANSWER
    assert len(answer.choices) == 2
    assert answer.usage.total_tokens


@pytest.mark.parametrize("incremental", [True, False])
def test_a_stream_of_2x(new: dashscope.Client, incremental: bool) -> None:
    stream = new.chat.completions.create(
        model="qwen-plus", messages=user(QUESTION), stream=True, incremental_output=incremental
    )
    assert stream.get_final_message().output_text == ANSWER


def test_parts_of_2x(new: dashscope.Client) -> None:
    answer = new.multimodal.chat.create(model="qwen-vl-plus", messages=user([{"type": "text", "text": QUESTION}]))
    assert answer.output_text == ANSWER
    image = {"type": "image", "url": "https://example.org/a.png"}
    with pytest.raises(APIStatusError, match="does not accept images") as caught:
        new.multimodal.chat.create(model="qwen-vl-plus", messages=user([{"type": "text", "text": QUESTION}, image]))
    assert caught.value.status_code == 400


def test_functions_of_2x(new: dashscope.Client) -> None:
    stream = new.chat.completions.create(model="qwen-plus", messages=user("weather"), tools=[TOOL], stream=True)
    (call,) = stream.get_final_message().choices[0].message.tool_calls or []
    assert json.loads(call.function.arguments) == ARGUMENTS


def test_errors_of_2x(new: dashscope.Client, product: Product) -> None:
    with pytest.raises(APIStatusError) as caught:
        new.chat.completions.create(model="nobody", messages=user("a"))
    assert caught.value.status_code == 404
    with pytest.raises(APIStatusError) as caught:
        list(new.chat.completions.create(model="nobody", messages=user("a"), stream=True))
    assert caught.value.status_code == 404


# ── The openai library ───────────────────────────────────────────────────────────────────────────────────────────────


def test_completions_of_openai(compatible: openai.OpenAI) -> None:
    answer = compatible.chat.completions.create(model="gpt-4o-mini", messages=user(QUESTION), n=2, temperature=2)
    assert (answer.choices[0].message.content or "") == ANSWER
    assert answer.choices[0].finish_reason == "stop"
    assert len(answer.choices) == 2
    assert answer.usage
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_of_openai(compatible: openai.OpenAI) -> None:
    chunks = list(
        compatible.chat.completions.create(
            model="gpt-4o-mini", messages=user(QUESTION), stream=True, stream_options={"include_usage": True}
        )
    )
    *told, last = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in told) == ANSWER
    assert told[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in told][-1] == "stop"
    assert (last.choices, {chunk.usage for chunk in told}) == ([], {None})
    assert last.usage
    assert last.usage.completion_tokens
    plain = list(compatible.chat.completions.create(model="gpt-4o-mini", messages=user(QUESTION), stream=True))
    assert plain[-1].choices[0].finish_reason == "stop"


async def test_async_calls_of_openai(product: Product) -> None:
    async with openai.AsyncOpenAI(
        api_key=product.keys["good"], base_url=f"{product.origin}/compatible-mode/v1"
    ) as client:
        stream = await client.chat.completions.create(model="gpt-4o", messages=user(QUESTION), stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(texts) == ANSWER


def test_functions_of_openai(compatible: openai.OpenAI) -> None:
    messages = user("weather")
    reply = compatible.chat.completions.create(model="gpt-4o", messages=messages, tools=[TOOL]).choices[0]
    assert reply.finish_reason == "tool_calls"
    assert reply.message.content is None
    (call,) = reply.message.tool_calls or []
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", ARGUMENTS)
    messages += [reply.message, {"role": "tool", "tool_call_id": call.id, "content": '{"degrees": 20}'}]
    with compatible.chat.completions.stream(model="gpt-4o", messages=messages, tools=[TOOL]) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "It is 20 degrees."
    with compatible.chat.completions.stream(model="gpt-4o", messages=user("weather"), tools=[TOOL]) as stream:
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls or []
    assert json.loads(call.function.arguments) == ARGUMENTS


def test_json_of_openai(compatible: openai.OpenAI, elsewhere: ChatServer) -> None:
    asked: Any = {"messages": user(QUESTION), "response_format": {"type": "json_object"}}
    compatible.chat.completions.create(model="gpt-4o", **asked)
    assert elsewhere.requests[-1]["response_format"] == {"type": "json_object"}


def test_images_of_openai(compatible: openai.OpenAI) -> None:
    url = f"data:image/png;base64,{base64.b64encode(b'no image').decode()}"
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    with pytest.raises(openai.BadRequestError, match="does not accept images") as caught:
        compatible.chat.completions.create(model="gpt-4o", messages=user(parts))
    assert caught.value.param == "messages.0.content"


def test_a_stream_that_breaks_off_in_openai(compatible: openai.OpenAI) -> None:
    stream = compatible.chat.completions.create(model="gpt-4o", messages=user("break it"), stream=True)
    assert next(stream).choices[0].delta.content == f"{FIRST} "
    with pytest.raises(openai.APIError, match="broke"):
        list(stream)


def test_errors_of_openai(compatible: openai.OpenAI, product: Product) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        compatible.chat.completions.create(model="nobody", messages=user("a"), stream=True)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        compatible.chat.completions.create(model="gpt-4o", messages=[])
    assert bad.value.param == "messages"
    with pytest.raises(openai.AuthenticationError):
        compatible.with_options(api_key="sk-wrong").models.list()
    with pytest.raises(openai.PermissionDeniedError):
        compatible.with_options(api_key=product.keys["elsewhere"]).models.list()
    with pytest.raises(openai.InternalServerError) as down:
        compatible.chat.completions.create(model="gpt-4o", messages=user("500"))
    assert down.value.status_code == 503


def test_models_of_openai(compatible: openai.OpenAI) -> None:
    names = [model.id for model in compatible.models.list()]
    assert len(names) == len(set(names))
    assert {"embedded-retrieval", "qwen-plus", "gpt-4o-mini", "text-embedding-v4", "whisper-1", "tts-1"} <= set(names)
    assert compatible.models.retrieve("gpt-4o-mini").id == "gpt-4o-mini"
    with pytest.raises(openai.NotFoundError):
        compatible.models.retrieve("some/thing")
