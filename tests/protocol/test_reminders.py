"""Timers and reminders of a session: they speak up when nobody else does."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import Conversation, Wire, counted_ids
from voiceapp.protocol.reminders import MAX_CHARS, MAX_REMINDER_S, MAX_REMINDERS, Reminder, ReminderChange, Reminders
from voiceapp.protocol.work import ReplyReminders, Respond

TEA = Reminder("the 3 minute timer", 180.0, "Your 3 minute timer is up.")
EGG = Reminder("the 5 minute timer", 300.0, "Your 5 minute timer is up.")


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def ask(talk: Conversation, change: ReminderChange) -> None:
    """A turn whose reply changes the reminders."""
    response_id = talk.ask("set a timer")
    talk.session.done(ReplyReminders(response_id, change), talk.now)
    talk.answer(response_id, "Okay.", ms=400)
    talk.wait(1000)
    talk.assert_event("response.done")
    talk.skip()


def test_a_timer_speaks_up_by_itself(talk: Conversation) -> None:
    ask(talk, ReminderChange(sets=TEA))
    talk.wait(178_000)
    talk.assert_no_event()
    talk.wait(4_000)
    work = talk.take(Respond)
    assert work.instead == TEA.text
    talk.answer(work.response_id, work.instead, ms=500)
    talk.wait(1000)
    assert talk.assert_event("response.done")["response"]["status"] == "completed"
    assert talk.records[-1].assistant_text == TEA.text


def test_it_waits_until_the_caller_has_finished(talk: Conversation) -> None:
    ask(talk, ReminderChange(sets=TEA))
    talk.wait(177_500)
    talk.say(4000)
    assert not talk.asks(Respond)
    talk.hush(960)
    talk.recognize("what about the tea")
    talk.answer(talk.take(Respond).response_id, ms=400)
    talk.wait(2000)
    assert talk.take(Respond).instead == TEA.text


def test_a_timer_that_was_taken_back_is_silent(talk: Conversation) -> None:
    ask(talk, ReminderChange(sets=TEA))
    ask(talk, ReminderChange(cancels_all=True))
    talk.wait(400_000)
    talk.assert_no_event()


def test_reminders_are_kept_in_their_order_and_said_together() -> None:
    reminders = Reminders(counted_ids())
    reminders.change(ReminderChange(sets=EGG), 0.0)
    reminders.change(ReminderChange(sets=TEA), 60.0)
    assert [reminder.name for reminder in reminders.pending(70.0)] == [TEA.name, EGG.name]
    assert reminders.pending(70.0)[0].in_s == 170.0
    assert reminders.next_due() == 240.0
    assert reminders.take_due(200.0) == ""
    assert reminders.take_due(300.0) == f"{TEA.text} {EGG.text}"
    assert reminders.next_due() is None


# ── Over a lost connection ───────────────────────────────────────────────────────────────────────────────────────────


def told(talk: Conversation) -> list[Wire]:
    """What the client was told last is set."""
    known = [event for event in talk.events if event["type"] == "session.reminders.updated"]
    pending: list[Wire] = known[-1]["reminders"]
    return pending


def test_the_client_is_told_what_is_set_until_it_was_said(talk: Conversation) -> None:
    ask(talk, ReminderChange(sets=TEA))
    ask(talk, ReminderChange(sets=EGG))
    tea, egg = told(talk)
    assert (tea["name"], tea["text"]) == (TEA.name, TEA.text)
    assert 175_000 < tea["due_in_ms"] < 180_000
    talk.wait(180_000)
    work = talk.take(Respond)
    talk.answer(work.response_id, TEA.text, ms=3000)
    talk.wait(1000)
    assert [each["id"] for each in told(talk)] == [tea["id"], egg["id"]]
    talk.wait(3000)
    talk.assert_event("response.done")
    assert [each["id"] for each in told(talk)] == [egg["id"]]
    ask(talk, ReminderChange(cancels_all=True))
    assert told(talk) == []


def test_a_timer_goes_on_in_the_session_that_continues_the_conversation(talk: Conversation) -> None:
    ask(talk, ReminderChange(sets=TEA))
    kept = told(talk)
    later = Conversation()
    for _ in range(2):
        later.tell("session.reminders.restore", reminders=[{**kept[0], "due_in_ms": 30_000.5}])
    later.wait(29_000)
    assert not later.asks(Respond)
    later.wait(2_000)
    work = later.take(Respond)
    assert work.instead == TEA.text
    later.answer(work.response_id, TEA.text, ms=400)
    later.wait(1000)
    later.assert_event("response.done")
    later.tell("session.reminders.restore", reminders=kept)
    assert told(later) == []
    later.wait(200_000)
    assert not later.asks(Respond)


def test_what_became_due_without_a_connection_is_said_at_once(talk: Conversation) -> None:
    talk.tell("session.reminders.restore", reminders=[{"id": "a", "name": "x", "text": "Tea.", "due_in_ms": 0}])
    talk.wait(100)
    assert talk.take(Respond).instead == "Tea."


TEA_ON_WIRE = {"id": "a", "name": "the timer", "text": "Tea.", "due_in_ms": 1000}


@pytest.mark.parametrize(
    "given",
    [
        None,
        "tea",
        ["tea"],
        [{}],
        [{**TEA_ON_WIRE, "id": ""}],
        [{**TEA_ON_WIRE, "text": " "}],
        [{**TEA_ON_WIRE, "text": "x" * (MAX_CHARS + 1)}],
        [{**TEA_ON_WIRE, "name": 5}],
        [{**TEA_ON_WIRE, "due_in_ms": -1}],
        [{**TEA_ON_WIRE, "due_in_ms": True}],
        [TEA_ON_WIRE, {**TEA_ON_WIRE, "id": "b", "due_in_ms": MAX_REMINDER_S * 1000 + 1}],
        [{**TEA_ON_WIRE, "id": str(number)} for number in range(MAX_REMINDERS + 1)],
    ],
)
def test_what_is_no_reminder_is_refused_whole(talk: Conversation, given: object) -> None:
    talk.tell("session.reminders.restore", reminders=given)
    assert talk.assert_event("error")["error"]["event_id"] == "mine"
    talk.wait(5_000)
    assert not talk.asks(Respond)
