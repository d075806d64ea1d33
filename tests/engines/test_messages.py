"""Items of a conversation as messages for a chat model."""

from __future__ import annotations

import pytest

from voiceapp.engines.interfaces import ChatMessage, ToolCall
from voiceapp.engines.messages import MAX_MESSAGES, messages, speakable
from voiceapp.protocol.items import FunctionCall, FunctionOutput, Item, Message, Role


def said(role: str, text: str, unheard: str = "") -> Message:
    return Message("item", Role(role), text=text, unheard=unheard)


def call(number: int) -> FunctionCall:
    return FunctionCall("i", f"c{number}", "f", "{}")


def output(number: int) -> FunctionOutput:
    return FunctionOutput("o", f"c{number}", "done")


def test_instructions_come_first_and_are_left_out_when_there_are_none() -> None:
    items = [said("user", "Hi"), said("assistant", "Hello"), said("system", "Be brief")]

    assert messages(items, "Be kind")[0] == ChatMessage("system", "Be kind")
    assert messages(items, "") == (
        ChatMessage("user", "Hi"),
        ChatMessage("assistant", "Hello"),
        ChatMessage("system", "Be brief"),
    )


def test_items_without_words_and_words_nobody_heard_drop_out() -> None:
    items = [said("user", ""), said("assistant", "Once upon", unheard=" a time"), said("assistant", "")]

    assert messages(items, "") == (ChatMessage("assistant", "Once upon"),)


def test_calls_of_one_answer_share_a_message_that_their_outputs_follow() -> None:
    found = messages([said("user", "Go"), call(1), call(2), output(1), output(2), call(3)], "")

    assert [message.role for message in found] == ["user", "assistant", "tool", "tool", "assistant"]
    assert found[1].tool_calls == (ToolCall("c1", "f", "{}"), ToolCall("c2", "f", "{}"))
    assert [message.tool_call_id for message in found[2:4]] == ["c1", "c2"]


def test_a_long_conversation_keeps_its_end_and_never_begins_with_a_tool_s_answer() -> None:
    items: list[Item] = [
        call(1),
        output(1),
        output(1),
        *(said("user", str(number)) for number in range(MAX_MESSAGES - 1)),
    ]

    found = messages(items, "Be kind")

    assert found[0].role == "system"
    assert found[1] == ChatMessage("user", "0")
    assert found[-1] == ChatMessage("user", str(MAX_MESSAGES - 2))


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("**Bold** and _thin_ and `code`", "Bold and thin and code"),
        ("# Title", " Title"),
        ("See [the manual](https://example.org/a_b).", "See the manual."),
        ("An array a[1] stays", "An array a[1] stays"),
        ("Nothing to do.", "Nothing to do."),
        ("***", ""),
    ],
)
def test_markup_is_not_pronounced(written: str, spoken: str) -> None:
    assert speakable(written) == spoken
