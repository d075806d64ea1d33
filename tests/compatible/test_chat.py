"""Chat completions, as bodies and as chunks."""

from __future__ import annotations

import json
from typing import Any

from tests.generation.conftest import Asker, text_of
from tests.generation.engine import INPUT_TOKENS, Obedient
from tests.generation.test_native import TOOL

PATH = "/compatible-mode/v1/chat/completions"


def body(said: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": said}], **more}


async def chunks(ask: Asker, said: Any, **more: Any) -> list[Any]:
    response = await ask.post(PATH, body(said, stream=True, **more))
    assert response["Content-Type"].startswith("text/event-stream")
    events = (await text_of(response)).split("\n\n")
    assert events.pop() == ""
    assert all(event.startswith("data: ") for event in events)
    return [data if data == "[DONE]" else json.loads(data) for data in (event[6:] for event in events)]


async def test_a_whole_completion(ask: Asker) -> None:
    response = await ask.post(PATH, body("say: Hello |there."))
    completion = response.json()
    assert completion.pop("created") > 1_700_000_000
    assert completion == {
        "id": f"chatcmpl-{response['X-Request-ID']}",
        "object": "chat.completion",
        "model": "gpt-4o",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello there.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": 2,
            "total_tokens": INPUT_TOKENS + 2,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


async def test_chunks_carry_what_is_new_and_end_with_done(ask: Asker) -> None:
    *told, done = await chunks(ask, "say: a|b")
    assert done == "[DONE]"
    assert [chunk["choices"][0]["delta"] for chunk in told] == [
        {"role": "assistant", "content": "a"},
        {"content": "b"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in told] == [None, None, "stop"]
    assert len({(chunk["id"], chunk["created"], chunk["object"]) for chunk in told}) == 1
    assert not any("usage" in chunk for chunk in told)


async def test_usage_comes_in_a_chunk_of_its_own_where_asked_for(ask: Asker) -> None:
    *told, last, done = await chunks(ask, "say: a", stream_options={"include_usage": True})
    assert done == "[DONE]"
    assert {chunk["usage"] for chunk in told} == {None}
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], INPUT_TOKENS + 1)


async def test_calls_come_in_fragments(ask: Asker) -> None:
    *told, _ = await chunks(ask, 'call: dim {"to": 5}', tools=[TOOL])
    fragments = [chunk["choices"][0]["delta"]["tool_calls"] for chunk in told[:-1]]
    assert fragments == [
        [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "dim", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"to"'}}],
        [{"index": 0, "function": {"arguments": ": 5}"}}],
    ]
    assert told[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_message_that_calls_has_no_content(ask: Asker) -> None:
    completion = (await ask.post(PATH, body('call: dim {"to": 5}', tools=[TOOL]))).json()
    message = completion["choices"][0]["message"]
    assert message["content"] is None
    assert message["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "dim", "arguments": '{"to": 5}'}}
    ]


async def test_several_answers_come_side_by_side(ask: Asker) -> None:
    *told, _ = await chunks(ask, "say: a|b", n=2)
    texts = {0: "", 1: ""}
    for chunk in told:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == {0: "ab", 1: "ab"}


async def test_thoughts_and_probabilities_are_passed_on(ask: Asker) -> None:
    completion = (await ask.post(PATH, body("think: Hm.", logprobs=True))).json()
    assert completion["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert completion["choices"][0]["logprobs"]["content"][0]["token"] == "Well."
    *told, _ = await chunks(ask, "think: Hm.", logprobs=True)
    assert told[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "reasoning_content": "Hm."}
    assert told[1]["choices"][0]["logprobs"]["content"][0]["token"] == "Well."


async def test_images_reach_an_engine_with_eyes(ask: Asker, engine: Obedient) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}}
    completion = (await ask.post(PATH, body([{"type": "text", "text": "see: "}, image]))).json()
    assert completion["choices"][0]["message"]["content"] == "1 images"
    assert engine.asked[0].messages[0].parts[0] == {"type": "text", "text": "see: "}


async def test_developers_are_the_system(ask: Asker, engine: Obedient) -> None:
    messages = [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "say: a", "name": "Ann"}]
    assert (await ask.post(PATH, body("") | {"messages": messages})).status_code == 200
    assert engine.asked[0].messages[0].role == "system"


async def test_failures_name_the_field(ask: Asker) -> None:
    for more, param in (
        ({"messages": []}, "messages"),
        ({"temperature": 3}, "temperature"),
        ({"n": 9}, "n"),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"model": "plain", "tools": [TOOL], "tool_choice": "required"}, "tool_choice"),
    ):
        response = await ask.post(PATH, body("say: a") | more)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == param
    response = await ask.post(PATH, body("say: a", model="nobody", stream=True))
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


async def test_what_fails_later_ends_the_events_with_an_error(ask: Asker) -> None:
    *_, last = await chunks(ask, "break: a")
    assert last["error"]["message"] == "It stopped in the middle."
    assert last["error"]["code"] == "model_unavailable"
    assert last["request_id"]
