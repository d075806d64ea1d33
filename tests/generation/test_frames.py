"""The native stream, byte for byte where clients are brittle."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.generation.conftest import MULTIMODAL, TEXT, Asker, bodies_of, text_of
from tests.generation.engine import INPUT_TOKENS, Obedient
from tests.generation.test_native import TOOL
from voiceapp.accounts.models import UsageRecord


def message(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body["output"]["choices"][0]["message"]
    return found


async def test_a_frame_is_what_clients_cut_up(ask: Asker) -> None:
    response = await ask.frames("say: Hé|llo", result_format="message", incremental_output=True)
    assert response["Content-Type"] == "text/event-stream;charset=UTF-8"
    assert response["X-Accel-Buffering"] == "no"
    request_id = response["X-Request-ID"]
    one, two, three, rest = (await text_of(response)).split("\n\n")
    choice = '{"finish_reason":"null","index":0,"message":{"role":"assistant","content":"Hé"}}'
    usage = '{"input_tokens":3,"output_tokens":1,"total_tokens":4}'
    assert one == (
        f'id:1\nevent:result\n:HTTP_STATUS/200\ndata:{{"output":{{"choices":[{choice}]}},'
        f'"usage":{usage},"request_id":"{request_id}"}}'
    )
    assert two.startswith("id:2\nevent:result\n:HTTP_STATUS/200\ndata:{")
    assert json.loads(three.partition("data:")[2])["output"]["choices"][0] == {
        "finish_reason": "stop",
        "index": 0,
        "message": {"role": "assistant", "content": ""},
    }
    assert rest == ""


@pytest.mark.parametrize("headers", [{"X-DashScope-SSE": "Enable"}, {"Accept": "text/event-stream"}])
async def test_either_header_switches_streaming_on(ask: Asker, headers: dict[str, str]) -> None:
    response = await ask.post(TEXT, {"model": "qwen-plus", "input": {"prompt": "say: a"}}, **headers)
    assert response.streaming
    assert [body["output"]["text"] for body in await bodies_of(response)] == ["a", "a"]


async def test_frames_repeat_the_text_so_far_unless_told_otherwise(ask: Asker) -> None:
    bodies = await bodies_of(await ask.frames("say: a|b|c", result_format="message"))
    assert [message(body)["content"] for body in bodies] == ["a", "ab", "abc", "abc"]
    bodies = await bodies_of(await ask.frames("say: a|b|c", result_format="message", incremental_output=True))
    assert [message(body)["content"] for body in bodies] == ["a", "b", "c", ""]
    reasons = [body["output"]["choices"][0]["finish_reason"] for body in bodies]
    assert reasons == ["null", "null", "null", "stop"]


async def test_text_frames_hold_text(ask: Asker) -> None:
    bodies = await bodies_of(await ask.frames("say: a|b", result_format="text"))
    assert [body["output"] for body in bodies] == [
        {"text": "a", "finish_reason": "null"},
        {"text": "ab", "finish_reason": "null"},
        {"text": "ab", "finish_reason": "stop"},
    ]


async def test_increments_of_no_stated_format_hold_text_alone(ask: Asker) -> None:
    bodies = await bodies_of(await ask.frames("say: a|b", incremental_output=True))
    assert [body["output"] for body in bodies][:2] == [
        {"text": "a", "finish_reason": "null"},
        {"text": "b", "finish_reason": "null"},
    ]


async def test_every_frame_says_what_was_used_and_for_which_request(ask: Asker) -> None:
    response = await ask.frames("say: a|b", result_format="message")
    bodies = await bodies_of(response)
    assert {body["request_id"] for body in bodies} == {response["X-Request-ID"]}
    totals = [body["usage"]["total_tokens"] for body in bodies]
    assert totals == sorted(totals)
    assert bodies[-1]["usage"]["input_tokens"] == INPUT_TOKENS


async def test_several_answers_come_side_by_side(ask: Asker) -> None:
    bodies = await bodies_of(await ask.frames("say: a|b", n=2, incremental_output=True))
    texts = {0: "", 1: ""}
    for body in bodies:
        (choice,) = body["output"]["choices"]
        texts[choice["index"]] += choice["message"]["content"]
        assert body["usage"]["output_tokens"] <= 2  # of this answer: clients add the answers up
    assert texts == {0: "ab", 1: "ab"}
    last = (await bodies_of(await ask.frames("say: a|b", n=2)))[-1]
    assert [choice["message"]["content"] for choice in last["output"]["choices"]] == ["ab", "ab"]
    assert last["usage"]["output_tokens"] == 4


async def test_calls_come_in_fragments_or_as_far_as_they_are(ask: Asker) -> None:
    said = 'call: dim {"to": 5}'
    bodies = await bodies_of(await ask.frames(said, tools=[TOOL], incremental_output=True))
    fragments = [message(body)["tool_calls"][0] for body in bodies if "tool_calls" in message(body)]
    assert [(part["index"], part["id"], part["function"]) for part in fragments] == [
        (0, "call_1", {"name": "dim", "arguments": ""}),
        (0, "", {"name": "", "arguments": '{"to"'}),
        (0, "", {"name": "", "arguments": ": 5}"}),
    ]
    bodies = await bodies_of(await ask.frames(said, tools=[TOOL]))
    calls = [message(body)["tool_calls"][0]["function"]["arguments"] for body in bodies]
    assert calls == ["", '{"to"', '{"to": 5}', '{"to": 5}']
    assert bodies[-1]["output"]["choices"][0]["finish_reason"] == "tool_calls"


async def test_parts_are_streamed_as_parts(ask: Asker) -> None:
    bodies = await bodies_of(await ask.frames([{"text": "say: a|b"}], MULTIMODAL, incremental_output=True))
    assert [message(body)["content"] for body in bodies] == [[{"text": "a"}], [{"text": "b"}], []]
    bodies = await bodies_of(await ask.frames([{"text": "say: a|b"}], MULTIMODAL))
    assert [message(body)["content"] for body in bodies] == [[{"text": "a"}], [{"text": "ab"}], [{"text": "ab"}]]


async def test_thoughts_come_before_the_answer(ask: Asker) -> None:
    bodies = await bodies_of(await ask.frames("think: Hm.", result_format="message", incremental_output=True))
    assert message(bodies[0]) == {"role": "assistant", "content": "", "reasoning_content": "Hm."}
    assert message(bodies[1]) == {"role": "assistant", "content": "Well."}


async def test_json_is_whole_when_its_pieces_are_put_together(ask: Asker) -> None:
    bodies = await bodies_of(
        await ask.frames(
            'say: "a"|\nb', model="plain", response_format={"type": "json_object"}, result_format="message"
        )
    )
    assert json.loads(message(bodies[-1])["content"]) == {"answer": '"a"\nb'}


async def test_what_fails_before_the_first_word_has_a_status(ask: Asker, engine: Obedient) -> None:
    for said, model, status in (("fail: ", "qwen-plus", 503), ("say: a", "nobody", 404)):
        response = await ask.frames(said, model=model)
        assert not response.streaming
        assert (response.status_code, response["Content-Type"]) == (status, "application/json")
    assert engine.closed == 1


@pytest.mark.parametrize(
    ("said", "code", "status"), [("break: a", "ModelUnavailable", 503), ("bug: a", "InternalError", 500)]
)
async def test_what_fails_later_ends_the_stream_with_an_error(ask: Asker, said: str, code: str, status: int) -> None:
    response = await ask.frames(said)
    _, error, rest = (await text_of(response)).split("\n\n")
    head, _, data = error.partition("data:")
    assert head == f"id:2\nevent:error\n:HTTP_STATUS/{status}\n"
    told = json.loads(data)
    assert told.keys() == {"code", "message", "request_id"}
    assert (told["code"], told["request_id"]) == (code, response["X-Request-ID"])
    assert "secret" not in told["message"]
    assert rest == ""


async def test_the_ledger_is_written_before_the_last_frame(ask: Asker) -> None:
    response = await ask.frames("say: a|b")
    async for part in response:
        if b'"stop"' in part:
            assert await UsageRecord.objects.filter(request_id=response["X-Request-ID"]).acount() == 2
            return
    raise AssertionError("there was no last frame")
