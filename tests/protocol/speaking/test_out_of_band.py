"""Out-of-band responses: they read what they are given, or the conversation, and leave no trace in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.conversations import Conversation, words_in
from voiceapp.protocol.work import Respond


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation(modalities=("text",))
    talk.answer(talk.ask_in_writing("What time is it?"), "It is noon.", ms=0)
    talk.skip()
    return talk


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}], **fields}


def ask_out_of_band(talk: Conversation, **fields: Any) -> Respond:
    talk.tell("response.create", response={"conversation": "none", **fields})
    return talk.take(Respond)


def test_it_reads_what_it_is_given(talk: Conversation) -> None:
    first = talk.session.conversation.items[0]
    given = [{"type": "item_reference", "id": first.id}, message("Is that a question?")]
    asked = ask_out_of_band(talk, input=given, metadata={"topic": "kind"}, instructions="Classify.")
    talk.answer(asked.response_id, "Yes.", ms=0)

    assert words_in(asked) == ["What time is it?", "Is that a question?"]
    assert asked.config.instructions == "Classify."
    response = talk.assert_event("response.done")["response"]
    assert response["output"][0]["content"][0]["text"] == "Yes."
    assert (response["conversation_id"], response["metadata"]) == (None, {"topic": "kind"})
    assert (talk.records[-1].user_text, talk.records[-1].assistant_text) == ("Is that a question?", "Yes.")


def test_it_reads_the_conversation_and_adds_nothing_to_it(talk: Conversation) -> None:
    asked = ask_out_of_band(talk)
    talk.answer(asked.response_id, "About the time.", ms=0)

    assert words_in(asked) == ["What time is it?", "It is noon."]
    talk.assert_no_event("conversation.item.created")
    talk.ask_in_writing("And now?")
    assert [item.text for item in talk.session.conversation.items if hasattr(item, "text")] == [
        "What time is it?",
        "It is noon.",
        "And now?",
    ]


def test_an_empty_input_is_nothing_to_read(talk: Conversation) -> None:
    assert ask_out_of_band(talk, input=[]).history == ()


def test_a_call_of_a_function_out_of_band_is_no_item(talk: Conversation) -> None:
    asked = ask_out_of_band(talk)
    talk.call(asked.response_id, 0, "call_1", "weather", "{}")
    talk.end(asked.response_id)

    talk.assert_event("response.function_call_arguments.done", call_id="call_1")
    assert len(talk.session.conversation.items) == 2


def test_a_caller_who_speaks_into_it_is_answered_in_the_conversation() -> None:
    talk = Conversation()
    asked = ask_out_of_band(talk, input=[message("Say it aloud.")])
    talk.answer(asked.response_id)
    talk.wait(500)
    response_id = talk.ask("Stop that.")

    assert talk.of("response.done")[0]["response"]["status_details"]["reason"] == "turn_detected"
    assert not talk.of("conversation.item.truncated")
    assert response_id != asked.response_id
    talk.answer(response_id)
    talk.wait(4000)
    assert talk.of("response.done")[1]["response"]["conversation_id"]
    assert [record.user_text for record in talk.records] == ["Say it aloud.", "Stop that."]


def test_it_waits_for_its_turn(talk: Conversation) -> None:
    ask_out_of_band(talk)
    talk.tell("response.create", response={"conversation": "none"})
    talk.assert_error("conversation_already_has_active_response")


def test_a_turn_that_waits_for_a_response_still_gets_one() -> None:
    talk = Conversation(modalities=("text",))
    talk.say(640)
    talk.hush(960)
    talk.tell("response.create", response={"conversation": "none", "input": [message("Spam?")]})
    talk.recognize("What time is it?")
    first = talk.take(Respond)
    talk.answer(first.response_id, "No.", ms=0)
    asked = talk.take(Respond)
    talk.answer(asked.response_id, "Noon.", ms=0)

    assert (words_in(first), words_in(asked)) == (["Spam?"], ["What time is it?"])
    assert [(each.user_text, each.is_spoken) for each in talk.records] == [("Spam?", False), ("What time is it?", True)]


@pytest.mark.parametrize("response", [{}, {"conversation": "auto"}, {"conversation": None, "input": None}])
def test_any_other_response_is_of_the_conversation(talk: Conversation, response: dict[str, Any]) -> None:
    talk.tell("response.create", response=response)
    assert talk.assert_event("response.created")["response"]["conversation_id"]


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"input": "Hello."}, "response.input"),
        ({"input": [message("Hi.")] * 1001}, "response.input"),
        ({"input": ["Hello."]}, "response.input[0]"),
        ({"input": [message("Hi."), {"type": "item_reference", "id": "nobody"}]}, "response.input[1]"),
        ({"input": [{"type": "item_reference"}]}, "response.input[0]"),
        ({"input": [{"type": "item_reference", "id": ["x"]}]}, "response.input[0]"),
        ({"input": [{"type": {}, "role": "user"}]}, "response.input[0]"),
        ({"input": [message("Hi.", role=[])]}, "response.input[0]"),
        ({"input": [message("a", id="x"), message("b", id="x")]}, "response.input[1]"),
        ({"input": [message("", content=[{"type": "input_audio", "audio": "AAAA"}])]}, "response.input[0]"),
        ({"input": [message("Hi.")], "conversation": "auto"}, "response.input"),
        ({"conversation": "foo"}, "response.conversation"),
        ({"conversation": {}}, "response.conversation"),
    ],
)
def test_what_it_cannot_read_is_refused(talk: Conversation, wrong: dict[str, Any], param: str) -> None:
    talk.tell("response.create", response={"conversation": "none", **wrong})
    talk.assert_error("invalid_value", param=param)
    talk.assert_no_event("response.created")
