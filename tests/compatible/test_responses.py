"""`/responses`: the same engine and the same charges as chat, in typed events that OpenAI's own types accept."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from openai.types.responses import Response, ResponseStreamEvent

from tests.compatible.test_chat import PATH as CHAT
from tests.compatible.test_chat import body as chat_body
from tests.generation.conftest import Asker, text_of
from tests.generation.engine import INPUT_TOKENS, Obedient
from voiceapp.accounts.models import UsageRecord
from voiceapp.engines.interfaces import ChatMessage, ToolCall

PATH = "/compatible-mode/v1/responses"
TOOL = {"type": "function", "name": "dim", "description": "Dims.", "parameters": {"type": "object"}, "strict": True}
EVENT_TYPES = {
    get_args(event.model_fields["type"].annotation)[0]: event for event in get_args(get_args(ResponseStreamEvent)[0])
}
SCHEMA = {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"enum": [*range(200)]}}}
LETTER = {"type": "json_schema", "name": "letter", "schema": SCHEMA, "strict": True}


async def response_to(ask: Asker, said: Any, **more: Any) -> Any:
    """The whole response, checked against the library's type."""
    answer = await ask.post(PATH, {"model": "gpt-4o", "input": said, **more})
    assert answer.status_code == 200, answer.content
    Response.model_validate(answer.json(), strict=True)
    return answer.json()


async def events_of(ask: Asker, said: Any, **more: Any) -> list[Any]:
    """The events of a stream, each checked against the library's type of its name."""
    answer = await ask.post(PATH, {"model": "gpt-4o", "input": said, "stream": True, **more})
    assert answer["Content-Type"].startswith("text/event-stream")
    *parts, rest = (await text_of(answer)).split("\n\n")
    assert rest == ""
    events = []
    for number, part in enumerate(parts):
        named, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        known = EVENT_TYPES[event["type"]]
        known.model_validate(event, strict=True)
        assert event.keys() <= known.model_fields.keys()
        assert (named, event["sequence_number"]) == (f"event: {event['type']}", number)
        events.append(event)
    return events


def names(events: list[Any]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


async def refused(ask: Asker, **fields: Any) -> Any:
    answer = await ask.post(PATH, {"model": "gpt-4o", "input": "say: a", **fields})
    assert answer.status_code == 400, answer.content
    return answer.json()["error"]


async def test_a_whole_response(ask: Asker) -> None:
    found = await response_to(ask, "say: Hello |there.", instructions="Be kind.", metadata={"a": "b"}, temperature=0.5)
    request_id = found["id"].removeprefix("resp_")
    assert found["created_at"] > 1_700_000_000
    assert found["output"] == [
        {
            "id": f"msg_{request_id}_0",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello there.", "annotations": [], "logprobs": []}],
        }
    ]
    assert (found["status"], found["instructions"], found["metadata"]) == ("completed", "Be kind.", {"a": "b"})
    assert (found["temperature"], found["store"], found["model"]) == (0.5, False, "gpt-4o")
    assert found["usage"] == {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + 2,
    }


async def test_the_ledger_says_the_same_as_of_chat(ask: Asker) -> None:
    by_chat = (await ask.post(CHAT, chat_body("say: a|b"))).json()["id"].removeprefix("chatcmpl-")
    by_responses = (await response_to(ask, "say: a|b"))["id"].removeprefix("resp_")
    rows = [
        [
            (row.operation, row.model, row.unit, row.quantity)
            async for row in UsageRecord.objects.filter(request_id=request_id).order_by("unit")
        ]
        for request_id in (by_chat, by_responses)
    ]
    assert rows[0]
    assert rows[0] == rows[1]


async def test_text_is_streamed_in_the_order_of_the_library(ask: Asker) -> None:
    events = await events_of(ask, "say: a|b")
    assert names(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["delta"] for event in events if "delta" in event] == ["a", "b"]
    assert events[0]["response"]["output"] == []
    assert (events[0]["response"]["status"], events[0]["response"]["usage"]) == ("in_progress", None)
    assert events[-1]["response"]["output"][0] == events[-2]["item"]
    assert events[-1]["response"]["usage"]["total_tokens"] == INPUT_TOKENS + 2


async def test_calls_of_functions_are_items(ask: Asker, engine: Obedient) -> None:
    asked = {"tools": [TOOL], "tool_choice": {"type": "function", "name": "dim"}, "parallel_tool_calls": False}
    events = await events_of(ask, 'call: dim {"to": 5}', **asked)
    assert names(events)[2:] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    (called,) = events[-1]["response"]["output"]
    assert (called["call_id"], called["name"], called["arguments"]) == ("call_1", "dim", '{"to": 5}')
    assert events[2]["item"]["arguments"] == ""
    request = engine.asked[0]
    assert request.tools == (
        {
            "type": "function",
            "function": {"name": "dim", "description": "Dims.", "parameters": {"type": "object"}, "strict": True},
        },
    )
    assert request.tool_choice == {"type": "function", "function": {"name": "dim"}}
    assert request.extra["parallel_tool_calls"] is False


async def test_items_become_messages(ask: Asker, engine: Obedient) -> None:
    earlier = await response_to(ask, 'call: dim {"to": 5}', tools=[TOOL])
    said = [{"type": "output_text", "text": "One moment.", "annotations": []}]
    spoken = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": said}
    await response_to(
        ask,
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Dim it."}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            spoken,
            *earlier["output"],
            {"type": "function_call", "call_id": "call_2", "name": "dim", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "dimmed"},
            {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "no"}]},
            {"role": "user", "content": "say: Done."},
        ],
        instructions="Be kind.",
    )
    assert engine.asked[-1].messages == (
        ChatMessage("system", "Be kind."),
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Dim it."),
        ChatMessage(
            "assistant",
            "One moment.",
            tool_calls=(ToolCall("call_1", "dim", '{"to": 5}'), ToolCall("call_2", "dim", "{}")),
        ),
        ChatMessage("tool", "dimmed", tool_call_id="call_1"),
        ChatMessage("tool", "no", tool_call_id="call_2"),
        ChatMessage("user", "say: Done."),
    )


async def test_structured_output_reaches_the_engine(ask: Asker, engine: Obedient) -> None:
    found = await response_to(ask, "say: {}", text={"format": LETTER, "verbosity": "low"})
    assert found["text"] == {"format": LETTER}
    shape = {"name": "letter", "schema": SCHEMA, "strict": True}
    assert engine.asked[0].extra["response_format"] == {"type": "json_schema", "json_schema": shape}
    error = await refused(ask, model="plain", text={"format": LETTER})
    assert (error["param"], "follows no schema" in error["message"]) == ("text.format", True)


async def test_thoughts_and_probabilities_are_told(ask: Asker) -> None:
    asked = {"include": ["message.output_text.logprobs", "reasoning.encrypted_content"], "top_logprobs": 1}
    events = await events_of(ask, "think: Hm.", **asked)
    assert names(events)[2:8] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]
    thought, message = events[-1]["response"]["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert message["content"][0]["logprobs"] == [
        {"token": "Well.", "logprob": -0.5, "bytes": list(b"Well."), "top_logprobs": []}
    ]
    Response.model_validate(events[-1]["response"], strict=True)


async def test_an_answer_that_was_cut_short_is_incomplete(ask: Asker) -> None:
    found = await response_to(ask, "say: a|b|c", max_output_tokens=1)
    assert (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert found["output"][0]["status"] == "incomplete"
    assert names(await events_of(ask, "say: a|b|c", max_output_tokens=1))[-1] == "incomplete"


async def test_what_fails_later_ends_the_events_with_a_failure(ask: Asker) -> None:
    last = (await events_of(ask, "break: a"))[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"] == {"code": "server_error", "message": "It stopped in the middle."}
    bug = (await events_of(ask, "bug: a"))[-1]["response"]["error"]["message"]
    assert "secret" not in bug


async def test_closing_the_events_stops_the_engine(ask: Asker, engine: Obedient) -> None:
    answer = await ask.post(PATH, {"model": "gpt-4o", "input": "hold: four|four", "stream": True})
    events = aiter(answer)
    while b"output_text.delta" not in await anext(events):
        pass
    await events.aclose()
    assert engine.closed == 1
    assert await UsageRecord.objects.filter(request_id=answer["X-Request-ID"]).acount() == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"),
        ("store", True),
        ("background", True),
        ("conversation", "conv_1"),
        ("conversation", {"id": "conv_1"}),
    ],
)
async def test_what_would_have_to_be_stored_is_refused(ask: Asker, field: str, value: Any) -> None:
    error = await refused(ask, **{field: value})
    assert error["param"] == field
    assert error["message"].startswith(f"{field}: ")


async def test_saying_that_nothing_shall_be_stored_is_fine(ask: Asker) -> None:
    await response_to(ask, "say: a", store=False, background=False, previous_response_id=None, conversation=None)


async def test_nothing_stored_can_be_retrieved(ask: Asker) -> None:
    answer = await ask.get(f"{PATH}/resp_1")
    assert answer.status_code == 404
    assert "not stored" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [], "instructions": "Be kind."}, "input"),
        ({"input": None}, "input"),
        ({"input": [{"content": "a"}]}, "input.0.role"),
        ({"input": [{"role": "user"}]}, "input.0.content"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input.0.content.0"),
        ({"input": [{"type": "web_search_call", "id": "ws_1"}]}, "input.0.type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0"),
        ({"input": [{"type": "function_call", "name": "dim", "arguments": "{}"}]}, "input.0.call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "call_1"}]}, "input.0.output"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"type": "function"}]}, "tools.0.name"),
        ({"tools": [{"name": "a", "parameters": {"enum": [*range(201)]}}]}, "tools"),
        ({"tools": [{"name": "a", "parameters": {"enum": [*range(190)]}}] * 6}, "tools"),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "glow"}}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema", "name": "letter"}}}, "text.format.schema"),
        ({"text": {"format": LETTER | {"schema": {"enum": [*range(201)]}}}}, "text.format.schema"),
        ({"temperature": 3}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
)
async def test_failures_name_the_field(ask: Asker, fields: dict[str, Any], param: str) -> None:
    assert (await refused(ask, **fields))["param"] == param


async def test_as_many_choices_of_tools_as_are_allowed_are_taken(ask: Asker) -> None:
    await response_to(ask, "say: a", tools=[TOOL | {"parameters": {"enum": [*range(200)]}}] * 5)


async def test_an_image_is_named_where_it_stands(ask: Asker) -> None:
    seen = [{"type": "input_text", "text": "see: "}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]
    said = [{"role": "assistant", "content": "a"}, {"role": "user", "content": seen}]
    found = await response_to(ask, said, instructions="Be kind.")
    assert found["output"][0]["content"][0]["text"] == "1 images"
    assert (await refused(ask, model="plain", input=said, instructions="Be kind."))["param"] == "input.1.content"
