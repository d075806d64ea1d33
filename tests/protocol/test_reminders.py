"""Timers and reminders of a session: they speak up when nobody else does."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import Conversation
from voiceapp.protocol.reminders import Reminder, ReminderChange, Reminders
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
    reminders = Reminders()
    reminders.change(ReminderChange(sets=EGG), 0.0)
    reminders.change(ReminderChange(sets=TEA), 60.0)
    assert [reminder.name for reminder in reminders.pending(70.0)] == [TEA.name, EGG.name]
    assert reminders.pending(70.0)[0].in_s == 170.0
    assert reminders.next_due() == 240.0
    assert reminders.take_due(200.0) == ""
    assert reminders.take_due(300.0) == f"{TEA.text} {EGG.text}"
    assert reminders.next_due() is None
