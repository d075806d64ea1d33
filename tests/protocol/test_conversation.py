"""Items: their order, their forms, what was heard of them, and what a model sees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.conversation import MAX_CHARACTERS, MAX_ITEMS, Conversation
from voiceapp.protocol.items import MAX_TEXT, FunctionCall, FunctionOutput, Item, ItemStatus, Message, Role, read_item


def user(item_id: str, text: str = "Hello") -> Message:
    return Message(item_id, text=text)


def call(item_id: str, call_id: str, status: str = "completed") -> FunctionCall:
    return FunctionCall(item_id, call_id, "f", status=ItemStatus(status))


def output(item_id: str, call_id: str) -> Item:
    return FunctionOutput(item_id, call_id, "42")


def ids(conversation: Conversation) -> list[str]:
    return [item.id for item in conversation.items]


def seen(*items: Item, max_turns: int | None = None) -> list[str]:
    conversation = Conversation()
    for item in items:
        conversation.add(item)
    return [item.id for item in conversation.history(max_turns)]


# ── Order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_oldest_items_are_forgotten() -> None:
    conversation = Conversation()
    for number in range(MAX_ITEMS + 5):
        conversation.add(user(str(number)))
    assert len(conversation.items) == MAX_ITEMS
    assert conversation.items[0].id == "5"


def test_long_items_are_forgotten_sooner() -> None:
    conversation = Conversation()
    for number in range(MAX_CHARACTERS // MAX_TEXT + 3):
        conversation.add(user(str(number), "x" * MAX_TEXT))
    assert sum(item.size for item in conversation.items) <= MAX_CHARACTERS
    assert conversation.items[0].id == "3"


# ── What a model sees ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_sees_the_last_turns_and_every_system_item() -> None:
    items = [Message("s", Role.SYSTEM), user("a"), Message("b", Role.ASSISTANT), user("c"), user("d")]
    assert seen(*items, max_turns=2) == ["s", "c", "d"]
    assert seen(*items, max_turns=50) == ["s", "a", "b", "c", "d"]


def test_a_model_sees_calls_with_their_answers_behind_them() -> None:
    assert seen(user("a"), call("b", "1"), call("c", "2"), output("d", "1"), output("e", "2")) == list("abcde")
    assert seen(call("a", "1"), output("b", "1"), call("c", "2"), output("d", "2")) == list("abcd")


def test_a_call_moves_to_its_answer_that_came_when_the_conversation_had_gone_on() -> None:
    assert seen(user("a"), call("b", "1"), user("c"), output("d", "1")) == ["a", "c", "b", "d"]
    late = (user("a"), call("b", "1"), call("c", "2"), output("d", "2"), user("e"), output("f", "1"))
    assert seen(*late) == ["a", "c", "d", "e", "b", "f"]


def test_calls_without_answers_and_answers_without_calls_stay_out() -> None:
    assert seen(user("a"), call("b", "1"), user("c"), output("d", "9")) == ["a", "c"]
    assert seen(call("a", "1", "incomplete"), output("b", "1")) == []


# ── On the wire ──────────────────────────────────────────────────────────────────────────────────────────────────────

FORMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "message", "role": role, "content": [{"type": kind, "text": "Hello"}]},
        {"type": "message", "role": role, "content": [{"type": shown, "text": "Hello"}]},
    )
    for role, shown in (("user", "input_text"), ("system", "input_text"), ("assistant", "text"))
    for kind in ("input_text", "output_text", "text")
]
FORMS += [
    (
        {"role": "user", "content": "Hello"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    ),
    (
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "transcript": "Hello"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "transcript": "Hello"}]},
    ),
    (
        {"type": "message", "role": "assistant", "content": [{"type": "audio", "transcript": "Hello"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "audio", "transcript": "Hello"}]},
    ),
    (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ),
    (
        {"type": "function_call_output", "call_id": "c", "output": "42"},
        {"type": "function_call_output", "call_id": "c", "output": "42"},
    ),
]


@pytest.mark.parametrize(("given_form", "shown"), FORMS)
def test_it_reads_every_form_of_item(given_form: dict[str, Any], shown: dict[str, Any]) -> None:
    item, audio = read_item(given_form, "item_1")
    assert audio is None
    assert item.to_wire() == {"id": "item_1", "object": "realtime.item", "status": "completed", **shown}


def test_it_keeps_the_id_that_the_client_chose() -> None:
    assert read_item({"id": "mine", "role": "user", "content": "x"}, "item_1")[0].id == "mine"
    for unusable in ("", 5, None, "x" * 129):
        assert read_item({"id": unusable, "role": "user", "content": "x"}, "item_1")[0].id == "item_1"


def test_it_joins_several_parts() -> None:
    parts = [{"type": "input_text", "text": "Hello"}, {"type": "input_text", "text": "there"}]
    item, _ = read_item({"role": "user", "content": parts}, "item_1")
    assert isinstance(item, Message)
    assert item.text == "Hello there"


def test_audio_without_words_waits_for_recognition() -> None:
    item, audio = read_item({"role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]}, "item_1")
    assert audio == "AAAA"
    assert item.to_wire()["content"] == [{"type": "input_audio", "transcript": None}]


@pytest.mark.parametrize(
    ("wire", "param"),
    [
        ({"type": "mcp_call"}, "item.type"),
        ({"type": "message", "content": "x"}, "item.role"),
        ({"role": "tool", "content": "x"}, "item.role"),
        ({"role": "user"}, "item.content"),
        ({"role": "user", "content": []}, "item.content"),
        ({"role": "user", "content": {}}, "item.content"),
        ({"role": "user", "content": ["x"]}, "item.content[0].type"),
        ({"role": "user", "content": [{"type": "video"}]}, "item.content[0].type"),
        ({"role": "user", "content": [{"type": ["text"]}]}, "item.content[0].type"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "item.content[0].text"),
        ({"role": "user", "content": [{"type": "input_text", "text": "x" * (MAX_TEXT + 1)}]}, "item.content[0].text"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}, "item.content[0]"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "item.content[0]"),
        ({"role": "assistant", "content": [{"type": "audio", "audio": "AAAA"}]}, "item.content[0]"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "item.call_id"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "item.name"),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}, "item.arguments"),
        ({"type": "function_call_output", "call_id": "c"}, "item.output"),
        ({"type": "function_call_output", "output": "x"}, "item.call_id"),
    ],
)
def test_it_names_the_field_that_it_refuses(wire: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_item(wire, "item_1")
    assert refused.value.param == param


# ── What was heard ───────────────────────────────────────────────────────────────────────────────────────────────────

TEXT = "It is noon. The sun shines."


def answer() -> Message:
    return Message("a", Role.ASSISTANT, spoken=True, text=TEXT, marks=[(12, 1000.0), (27, 3000.0)])


@pytest.mark.parametrize(
    ("heard_ms", "heard"),
    [
        (0, ""),
        (200, "It"),
        (999, "It is noon."),
        (1000, "It is noon. "),
        (1500, "It is noon. The"),
        (3000, TEXT),
        (9000, TEXT),
    ],
)
def test_what_was_heard_ends_at_a_word(heard_ms: float, heard: str) -> None:
    item = answer()
    item.cut(heard_ms)
    assert (item.text, item.unheard) == (heard, TEXT[len(heard) :])


def test_a_better_position_corrects_an_earlier_cut() -> None:
    item = answer()
    item.cut(200)
    item.cut(1000)
    assert (item.text, item.unheard) == ("It is noon. ", "The sun shines.")


def test_words_whose_audio_is_not_made_yet_were_not_heard() -> None:
    item = Message("a", Role.ASSISTANT, spoken=True, text=TEXT)
    item.cut(5000)
    assert (item.text, item.unheard) == ("", TEXT)


def test_a_sentence_whose_length_is_not_known_yet_was_heard_at_the_usual_pace() -> None:
    item = Message("a", Role.ASSISTANT, spoken=True, text=TEXT, audio_ms=900.0)
    item.cut(500)
    assert item.text == "It is"
    item.cut(5000)
    assert item.text == "It is noon."


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.floats(0, 10_000)), max_size=6),
    st.lists(st.floats(0, 20_000), min_size=1, max_size=4),
)
def test_a_cut_loses_no_character(text: str, marks: list[tuple[int, float]], positions: list[float]) -> None:
    said = sorted(min(characters, len(text)) for characters, _ in marks)
    item = Message("a", Role.ASSISTANT, spoken=True, text=text)
    item.marks = list(zip(said, sorted(ms for _, ms in marks), strict=True))
    for position in positions:
        item.cut(position)
        assert item.text + item.unheard == text
    longer = Message("b", text=text, marks=item.marks)
    longer.cut(max(positions))
    item.cut(min(positions))
    assert longer.text.startswith(item.text)
