"""Functions that take long: the conversation goes on, and the result is said when both are silent."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import Conversation
from voiceapp.protocol.items import FunctionOutput
from voiceapp.protocol.speaking.late_calls import FILLER_AFTER_S
from voiceapp.protocol.speaking.stock_replies import StockReply, stock_reply
from voiceapp.protocol.work import Respond

FILLERS = {stock_reply(StockReply.FILLER, "en", number) for number in range(9)}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {}}}
WAIT_MS = FILLER_AFTER_S * 1000


@pytest.fixture
def talk() -> Conversation:
    """A caller has asked, and the model has called a function."""
    talk = Conversation(tools=(TOOL,))
    call(talk, talk.ask("How is the weather?"))
    return talk


def call(talk: Conversation, response_id: str, *call_ids: str) -> None:
    for index, call_id in enumerate(call_ids or ("call_1",)):
        talk.call(response_id, index, call_id, "weather", "{}")
    talk.end(response_id, "tool_calls")
    talk.assert_event("response.done")


def answer(talk: Conversation, call_id: str = "call_1", *, asks: bool = True) -> None:
    item = {"type": "function_call_output", "call_id": call_id, "output": "It rains."}
    talk.tell("conversation.item.create", item=item)
    if asks:
        talk.tell("response.create")


def outputs(work: Respond) -> list[str]:
    return [item.output for item in work.history if isinstance(item, FunctionOutput)]


def test_the_caller_is_told_once_that_it_takes_a_moment(talk: Conversation) -> None:
    talk.wait(WAIT_MS - 1)
    assert not talk.asks(Respond)
    talk.wait(1)
    filler = talk.take(Respond)
    assert filler.instead in FILLERS
    talk.answer(filler.response_id, filler.instead)
    talk.wait(30_000)
    assert not talk.asks(Respond)
    answer(talk)
    reply = talk.take(Respond)
    assert outputs(reply) == ["It rains."]
    assert not any(getattr(item, "text", "") in FILLERS for item in reply.history), "no model reads it"


def test_a_result_in_time_needs_no_filler(talk: Conversation) -> None:
    talk.wait(WAIT_MS - 1)
    answer(talk)
    reply = talk.take(Respond)
    assert not reply.instead
    talk.answer(reply.response_id, ms=0)
    talk.wait(30_000)
    assert not talk.asks(Respond)


def test_a_result_during_the_filler_waits_for_its_end(talk: Conversation) -> None:
    talk.wait(WAIT_MS)
    filler = talk.take(Respond)
    talk.answer(filler.response_id, filler.instead, ms=1000)
    answer(talk)
    assert not talk.asks(Respond)
    talk.assert_no_event("error")
    talk.wait(1500)
    assert outputs(talk.take(Respond)) == ["It rains."]


def test_the_conversation_goes_on_and_the_result_is_said_when_both_are_silent(talk: Conversation) -> None:
    talk.wait(WAIT_MS)
    talk.take(Respond)
    meanwhile = talk.ask("What time is it?")  # interrupts the filler
    talk.answer(meanwhile, ms=2000)
    answer(talk)
    talk.wait(500)
    assert not talk.asks(Respond)
    talk.say(640)  # the caller speaks again, and nothing is understood
    talk.hush(960)
    talk.recognize("")
    talk.wait(5000)
    late = talk.take(Respond)
    assert outputs(late) == ["It rains."]
    heard = [item for item in late.history if getattr(item, "text", "x")]
    assert isinstance(heard[-1], FunctionOutput), "the last that the model reads"


def test_a_result_is_said_with_the_reply_to_what_the_caller_says_over_it(talk: Conversation) -> None:
    talk.say(640)
    answer(talk)
    talk.assert_no_event("error")
    talk.hush(960)
    talk.recognize("And tomorrow?")
    reply = talk.take(Respond)
    assert outputs(reply) == ["It rains."]
    talk.answer(reply.response_id, ms=0)
    talk.wait(30_000)
    assert not talk.asks(Respond), "once"


def test_any_other_response_is_refused_while_one_is_under_way(talk: Conversation) -> None:
    talk.wait(WAIT_MS)
    talk.take(Respond)
    talk.tell("response.create")
    talk.assert_error("conversation_already_has_active_response")


def test_one_of_several_results_leaves_the_others_late() -> None:
    talk = Conversation(tools=(TOOL,))
    call(talk, talk.ask(), "call_1", "call_2")
    answer(talk, "call_1", asks=False)
    talk.wait(WAIT_MS)
    assert talk.take(Respond).instead in FILLERS


@pytest.mark.parametrize("settings", [{"modalities": ["text"]}, {"turn_detection": None}])
def test_clients_that_begin_each_response_are_told_nothing(talk: Conversation, settings: dict[str, object]) -> None:
    talk.update(**settings)
    talk.wait(30_000)
    assert not talk.asks(Respond)


def test_a_reply_that_spoke_before_it_called_needs_no_filler() -> None:
    talk = Conversation(tools=(TOOL,))
    response_id = talk.ask()
    talk.write(response_id, "Let me look.")
    talk.speak(response_id, 500, 12)
    talk.call(response_id, 0, "call_1", "weather", "{}")
    talk.end(response_id, "tool_calls")
    talk.wait(30_000)
    assert not talk.asks(Respond)


def test_it_is_no_part_of_the_conversation_in_either_dialect(talk: Conversation) -> None:
    talk.wait(WAIT_MS)
    filler = talk.take(Respond)
    begun = len(talk.events)
    talk.answer(filler.response_id, filler.instead)
    talk.wait(5000)
    assert talk.assert_event("response.created")["response"]["conversation_id"] is None
    assert not [event for event in talk.events[begun:] if event["type"] == "conversation.item.created"]
    assert [event for event in talk.events[begun:] if event["type"] == "response.audio.delta"]
