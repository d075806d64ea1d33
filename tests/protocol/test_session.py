"""Client events in every order, legal and not, and how a session ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.conversations import Conversation, words_in
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.session import FINISH_S
from voiceapp.protocol.work import Abandon, ItemRecognized, ReplyUsed, Respond


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    talk.skip()
    return talk


def message(text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}], **fields}


# ── Session ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_server_speaks_first() -> None:
    talk = Conversation()
    session = talk.assert_event("session.created")["session"]
    assert (session["id"], session["object"], session["model"]) == ("sess_1", "realtime.session", "voice")
    talk.assert_no_event()


def test_a_guest_is_told_of_the_end_once_silent_and_no_model_reads_it() -> None:
    talk = Conversation(guest_lasts_s=180, transcription_language="de")
    talk.hush(159_000)
    talk.say(2_000)
    assert not talk.asks(Respond), "the caller speaks"
    talk.hush(960)
    talk.recognize("Ja")
    talk.answer(talk.take(Respond).response_id, "Gut.", ms=1_000)
    talk.update(modalities=["text"])
    talk.wait(3_000)
    assert not talk.asks(Respond), "it is not written"
    talk.update(modalities=["text", "audio"])
    talk.wait(100)
    told = talk.take(Respond)
    assert told.instead == "Unsere Zeit ist fast um. Danach können Sie hier weitermachen."
    talk.answer(told.response_id, told.instead)
    talk.wait(3_000)
    talk.tell("conversation.item.create", item=message("Noch etwas"))
    talk.tell("response.create")
    assert words_in(talk.take(Respond)) == ["Ja", "Gut.", "Noch etwas"]
    talk.wait(15_000)
    assert not talk.asks(Respond), "once is enough"


def test_an_update_gives_back_the_whole_session(talk: Conversation) -> None:
    before = talk.events[0]["session"]
    talk.update(voice="Cherry")
    assert talk.assert_event("session.updated")["session"] == {
        **before,
        "voice": "Cherry",
        "audio": {**before["audio"], "output": {**before["audio"]["output"], "voice": "Cherry"}},
    }


def test_a_refused_update_changes_nothing(talk: Conversation) -> None:
    talk.update(voice="Cherry", modalities=["audio"])
    talk.assert_error("invalid_value", param="session.modalities")
    talk.assert_no_event()
    assert talk.session.config.voice == "Tina"


def test_what_cannot_be_read_is_an_error_and_the_session_lives_on(talk: Conversation) -> None:
    talk.tell("session.explode")
    talk.assert_error("unknown_event_type", param="type")
    talk.tell("conversation.item.delete")
    talk.assert_error("missing_required_parameter", param="item_id")
    talk.tell_text("nonsense")
    talk.assert_error("invalid_json", event_id=None)
    talk.update()
    talk.assert_types("session.updated")


def test_pictures_are_refused_in_plain_words(talk: Conversation) -> None:
    talk.tell("input_image_buffer.append", image="AAAA")
    assert "does not accept images" in talk.assert_error("image_not_supported", param="image")["message"]


# ── Items ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_item_can_be_created_retrieved_and_deleted(talk: Conversation) -> None:
    talk.tell("conversation.item.create", item=message("Hello", id="mine"))
    item = talk.assert_event("conversation.item.created")["item"]
    assert item["id"] == "mine"
    talk.tell("conversation.item.retrieve", item_id="mine")
    talk.assert_event("conversation.item.retrieved", item=item)
    talk.tell("conversation.item.delete", item_id="mine")
    talk.assert_event("conversation.item.deleted", item_id="mine")
    talk.tell("conversation.item.retrieve", item_id="mine")
    talk.assert_error("invalid_value", param="item_id")
    talk.tell("conversation.item.delete", item_id="mine")
    talk.assert_error("invalid_value", param="item_id")


def test_items_stand_where_the_client_put_them(talk: Conversation) -> None:
    talk.tell("conversation.item.create", item=message("b", id="b"))
    talk.tell("conversation.item.create", item=message("c", id="c"))
    talk.assert_event("conversation.item.created", previous_item_id=None)
    talk.assert_event("conversation.item.created", previous_item_id="b")
    talk.tell("conversation.item.create", item=message("a", id="a"), previous_item_id="root")
    talk.assert_event("conversation.item.created", previous_item_id=None)
    talk.tell("conversation.item.create", item=message("b2", id="b2"), previous_item_id="b")
    talk.assert_event("conversation.item.created", previous_item_id="b")
    talk.tell("response.create")
    assert words_in(talk.take(Respond)) == ["a", "b", "b2", "c"]


def test_an_item_that_cannot_be_placed_is_refused(talk: Conversation) -> None:
    talk.tell("conversation.item.create", item=message("a", id="a"), previous_item_id="nobody")
    talk.assert_error("invalid_value")
    talk.tell("conversation.item.create", item={"type": "message", "role": "narrator"})
    talk.assert_error("invalid_value", param="item.role")
    talk.tell("conversation.item.create", item=message("a", id="a"))
    talk.tell("conversation.item.create", item=message("again", id="a"))
    talk.assert_error("invalid_value", param="item.id")
    assert talk.item("a")["content"][0]["text"] == "a"


def test_the_id_of_what_is_being_said_is_taken(talk: Conversation) -> None:
    talk.say(640)
    item_id = talk.assert_event("input_audio_buffer.speech_started")["item_id"]
    talk.tell("conversation.item.create", item=message("Hello", id=item_id))
    talk.assert_error("invalid_value", param="item.id")
    talk.hush(960)
    talk.assert_event("input_audio_buffer.committed", item_id=item_id)


def test_audio_inside_an_item_is_recognised_before_the_answer(talk: Conversation) -> None:
    content = [{"type": "input_audio", "audio": "AAAA"}]
    talk.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    talk.tell("response.create")
    talk.assert_event("response.created")
    assert not talk.asks(Respond)
    assert talk.recognize_item("Hello").audio == "AAAA"
    assert words_in(talk.take(Respond)) == ["Hello"]
    talk.assert_event("conversation.item.input_audio_transcription.completed", transcript="Hello")


def test_audio_inside_an_item_that_cannot_be_recognised_is_not_taken_for_silence(talk: Conversation) -> None:
    content = [{"type": "input_audio", "audio": "AAAA"}]
    talk.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content, "id": "said"})
    talk.tell("response.create")
    talk.fail_item()
    failed = talk.assert_event("conversation.item.input_audio_transcription.failed", item_id="said")
    assert failed["error"]["code"] == "ModelUnavailable"
    talk.assert_no_event("conversation.item.input_audio_transcription.completed")
    assert talk.assert_event("response.done")["response"]["status"] == "failed"
    assert not talk.asks(Respond)


def test_words_of_an_item_that_was_deleted_meanwhile_are_forgotten(talk: Conversation) -> None:
    talk.say(640)
    talk.hush(960)
    item_id = talk.assert_event("input_audio_buffer.committed")["item_id"]
    talk.tell("conversation.item.delete", item_id=item_id)
    talk.recognize("Hello")
    talk.assert_types("conversation.item.created", "conversation.item.deleted")


def test_an_answer_that_is_being_given_cannot_be_deleted(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "It is ")
    talk.call(response_id, 0, "call_1", "weather", "{}")
    for event in talk.of("response.output_item.added"):
        talk.tell("conversation.item.delete", item_id=event["item"]["id"])
        talk.assert_error("item_in_progress", param="item_id")
    talk.end(response_id)
    for event in talk.of("response.output_item.added"):
        talk.tell("conversation.item.delete", item_id=event["item"]["id"])
        talk.assert_event("conversation.item.deleted")


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_can_be_asked_for_without_any_words(talk: Conversation) -> None:
    talk.tell("response.create")
    talk.assert_types("response.created")
    assert talk.take(Respond).history == ()


def test_an_answer_can_have_settings_of_its_own(talk: Conversation) -> None:
    talk.tell("response.create", response={"modalities": ["text"], "instructions": "Rhyme.", "voice": None})
    assert talk.assert_event("response.created")["response"]["modalities"] == ["text"]
    work = talk.take(Respond)
    assert (work.config.instructions, work.config.voice) == ("Rhyme.", "Tina")
    assert talk.session.config.instructions == ""


def test_settings_of_an_answer_are_checked(talk: Conversation) -> None:
    talk.tell("response.create", response={"temperature": 9})
    talk.assert_error("invalid_value", param="response.temperature")
    assert not talk.asks(Respond)


def test_there_is_one_answer_at_a_time(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.tell("response.create")
    talk.assert_error("conversation_already_has_active_response")
    talk.answer(response_id, ms=2000)
    talk.tell("response.create")
    talk.assert_error("conversation_already_has_active_response")
    talk.wait(3000)
    talk.tell("response.create")
    talk.assert_event("response.created")


def test_there_is_no_answer_while_the_caller_speaks(talk: Conversation) -> None:
    talk.say(320)
    talk.tell("response.create")
    # One client library retries when it reads just these words.
    assert "user is speaking" in talk.assert_error("user_is_speaking")["message"]


def test_answers_can_be_asked_for_instead_of_given(talk: Conversation) -> None:
    talk.update(turn_detection={"create_response": False})
    talk.say(640)
    talk.hush(960)
    talk.recognize("Hello")
    talk.assert_no_event("response.created")
    talk.tell("response.create")
    talk.assert_event("response.created")
    assert words_in(talk.take(Respond)) == ["Hello"]


def test_only_the_last_turns_are_shown_to_the_model(talk: Conversation) -> None:
    talk.update(max_history_turns=2)
    for word in ("one", "two", "three"):
        talk.tell("conversation.item.create", item=message(word))
    talk.tell("response.create")
    assert words_in(talk.take(Respond)) == ["two", "three"]


def test_an_answer_asked_for_while_words_are_pending_covers_them(talk: Conversation) -> None:
    talk.say(640)
    talk.hush(960)
    talk.tell("response.create")
    talk.recognize("Hello")
    response_id = talk.take(Respond).response_id
    talk.answer(response_id, ms=100)
    talk.wait(1000)
    assert len(talk.of("response.created")) == 1


# ── Truncation by the client ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_client_says_how_much_it_played(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, "It is noon. The sun shines. ", ms=2000)
    talk.wait(3000)
    item_id = talk.assert_event("response.output_item.done")["item"]["id"]
    talk.tell("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=1000)
    talk.assert_event(
        "conversation.item.truncated",
        item_id=item_id,
        content_index=0,
        audio_end_ms=1000,
        transcript="It is noon.",
        unheard=" The sun shines. ",
    )
    assert talk.item(item_id)["content"] == [{"type": "audio", "transcript": "It is noon."}]
    first, second = talk.records
    assert (first.ordinal, first.heard_text, first.is_interrupted) == (1, "It is noon. The sun shines. ", False)
    assert (second.ordinal, second.heard_text, second.is_interrupted) == (1, "It is noon.", True)


def test_an_answer_that_was_played_to_its_end_was_not_interrupted(talk: Conversation) -> None:
    talk.answer(talk.ask(), ms=500)
    talk.wait(1000)
    item_id = talk.assert_event("response.output_item.done")["item"]["id"]
    talk.tell("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=500)
    talk.assert_event("conversation.item.truncated", transcript="It is noon. ", unheard="")
    assert [record.is_interrupted for record in talk.records] == [False, False]


def test_truncating_an_earlier_answer_leaves_the_latest_record_alone(talk: Conversation) -> None:
    talk.answer(talk.ask(), ms=500)
    talk.wait(1000)
    item_id = talk.assert_event("response.output_item.done")["item"]["id"]
    talk.answer(talk.ask(), ms=500)
    talk.wait(1000)
    talk.tell("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=0)
    talk.assert_event("conversation.item.truncated", transcript="")
    assert [record.ordinal for record in talk.records] == [1, 2]


def test_truncating_the_answer_that_is_being_given_ends_it(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, "It is noon. The sun shines. ", ms=2000)
    talk.wait(500)
    item_id = talk.assert_event("response.output_item.added")["item"]["id"]
    talk.tell("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=300)
    assert talk.assert_event("response.done")["response"]["status"] == "cancelled"
    talk.assert_event("conversation.item.truncated", transcript="It is")
    talk.assert_event("conversation.item.truncated", transcript="It", audio_end_ms=300)


OUTPUT = {"id": "x", "type": "function_call_output", "call_id": "call_1", "output": "Rain"}


@pytest.mark.parametrize("item", [message("Hello", id="x"), OUTPUT])
def test_only_spoken_answers_can_be_truncated(talk: Conversation, item: dict[str, Any]) -> None:
    talk.tell("conversation.item.create", item=item)
    talk.tell("conversation.item.truncate", item_id="x", content_index=0, audio_end_ms=0)
    talk.assert_error("invalid_value", param="item_id")
    talk.tell("conversation.item.truncate", item_id="nobody", content_index=0, audio_end_ms=0)
    talk.assert_error("invalid_value", param="item_id")


def test_an_answer_has_one_part_to_truncate(talk: Conversation) -> None:
    talk.answer(talk.ask(), ms=100)
    item_id = talk.assert_event("response.output_item.done")["item"]["id"]
    talk.tell("conversation.item.truncate", item_id=item_id, content_index=1, audio_end_ms=0)
    talk.assert_error("invalid_value", param="content_index")


# ── Records ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_answer_is_recorded(talk: Conversation) -> None:
    response_id = talk.ask("What time is it?")
    talk.session.done(ReplyUsed(response_id, 50, 4), talk.now)
    talk.answer(response_id, "It is noon. ", ms=500)
    talk.wait(1000)
    talk.answer(talk.ask_in_writing("And the date?"), "Monday. ", ms=500)
    talk.wait(1000)
    spoken, typed = talk.records
    assert (spoken.ordinal, spoken.status, spoken.user_text) == (1, "completed", "What time is it?")
    assert (spoken.assistant_text, spoken.heard_text, spoken.is_interrupted) == ("It is noon. ", "It is noon. ", False)
    assert (spoken.output_audio_ms, spoken.input_tokens, spoken.output_tokens) == (500, 50, 4)
    assert spoken.input_audio_ms > 640
    assert (typed.ordinal, typed.user_text, typed.input_audio_ms) == (2, "And the date?", 0)
    assert talk.session.turns == 2


# ── Silence ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def patient() -> Conversation:
    return Conversation(turn_detection=TurnDetection(idle_timeout_ms=5000))


def test_a_silent_caller_is_asked_once(patient: Conversation) -> None:
    patient.answer(patient.ask(), ms=500)
    patient.wait(5100)
    patient.assert_no_event("input_audio_buffer.timeout_triggered")
    patient.wait(500)
    event = patient.assert_event("input_audio_buffer.timeout_triggered", audio_start_ms=0, audio_end_ms=1600)
    assert event["item_id"]
    patient.assert_event("response.created")
    work = patient.take(Respond)
    assert work.is_idle_prompt
    patient.answer(work.response_id, "Are you there? ", ms=500)
    patient.wait(60_000)
    assert len(patient.of("input_audio_buffer.timeout_triggered")) == 1


def test_a_caller_who_never_spoke_is_not_asked(patient: Conversation) -> None:
    patient.wait(60_000)
    patient.assert_no_event("input_audio_buffer.timeout_triggered")


def test_the_wait_begins_again_when_the_caller_made_a_noise(patient: Conversation) -> None:
    patient.answer(patient.ask(), ms=500)
    patient.wait(4000)
    patient.say(160)
    patient.hush(800)
    assert patient.of("input_audio_buffer.speech_stopped")[-1]["reason"] == "turn_invalid"
    patient.wait(4900)
    patient.assert_no_event("input_audio_buffer.timeout_triggered")
    patient.wait(200)
    patient.assert_event("input_audio_buffer.timeout_triggered")


def test_nobody_is_asked_while_an_answer_goes_on(patient: Conversation) -> None:
    patient.update(turn_detection={"interrupt_response": False})
    response_id = patient.ask()
    patient.answer(response_id, ms=20_000)
    patient.say(320)
    patient.hush(960)
    patient.recognize("Hello")
    patient.wait(10_000)
    patient.assert_no_event("input_audio_buffer.timeout_triggered", "response.done")


def test_nobody_is_asked_while_words_are_being_found(patient: Conversation) -> None:
    patient.answer(patient.ask(), ms=500)
    patient.wait(1000)
    patient.say(320)
    patient.hush(960)
    patient.wait(20_000)
    patient.assert_no_event("input_audio_buffer.timeout_triggered")


# ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_finishing_with_nothing_under_way_ends_at_once(talk: Conversation) -> None:
    talk.tell("session.finish")
    talk.assert_types("session.finished")
    assert talk.session.is_finished
    assert talk.session.next_timer() is None


def test_finishing_gives_the_rest_of_the_answer_at_once(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, ms=5000)
    talk.assert_no_event("response.done")
    talk.tell("session.finish")
    assert talk.assert_event("response.done")["response"]["status"] == "completed"
    talk.assert_types("session.finished")
    assert talk.audio_ms(response_id) == 5000


def test_finishing_waits_for_an_answer_that_is_being_written(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.write(response_id, "It is noon. ")
    talk.tell("session.finish")
    talk.speak(response_id, 50)
    talk.speak(response_id, 3000, 12)
    talk.assert_no_event("session.finished")
    talk.end(response_id)
    talk.assert_event("response.done")
    talk.assert_types("session.finished")
    assert talk.audio_ms(response_id) == 3050


def test_finishing_answers_what_was_being_said(talk: Conversation) -> None:
    talk.say(640)
    talk.tell("session.finish")
    talk.assert_event("input_audio_buffer.committed")
    talk.assert_no_event("session.finished")
    talk.recognize("What time is it?")
    talk.answer(talk.take(Respond).response_id, ms=4000)
    talk.assert_event("response.done")
    talk.assert_types("session.finished")


def test_finishing_does_not_wait_for_ever(talk: Conversation) -> None:
    talk.ask()
    talk.tell("session.finish")
    talk.wait(FINISH_S * 1000 - 10)
    talk.assert_no_event("session.finished")
    talk.wait(20)
    assert talk.assert_event("response.done")["response"]["status"] == "cancelled"
    talk.assert_types("session.finished")


def test_nothing_follows_the_end(talk: Conversation) -> None:
    talk.say(640)
    talk.hush(960)
    work = talk.take_final()
    talk.tell("session.finish")
    talk.wait(FINISH_S * 1000)
    talk.assert_event("session.finished")
    talk.late(work, "Hello")
    talk.session.done(ItemRecognized("item_1", "Hello"), talk.now)
    talk.tell("response.create")
    talk.say(640)
    talk.hush(960)
    talk.wait(60_000)
    talk.assert_no_event()
    assert talk.session.next_timer() is None


def test_audio_that_the_client_did_not_commit_is_forgotten(talk: Conversation) -> None:
    talk.update(turn_detection=None)
    talk.say(640)
    talk.tell("session.finish")
    talk.assert_types("session.updated", "session.finished")


def test_nothing_new_is_accepted_while_finishing(talk: Conversation) -> None:
    talk.ask()
    talk.tell("session.finish")
    for kind in ("session.finish", "response.create", "input_audio_buffer.commit"):
        talk.tell(kind)
        talk.assert_error("invalid_event")
    talk.say(640)
    talk.assert_no_event("input_audio_buffer.speech_started")


def test_finishing_waits_for_audio_inside_an_item(talk: Conversation) -> None:
    content = [{"type": "input_audio", "audio": "AAAA"}]
    talk.tell("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    talk.tell("session.finish")
    talk.assert_no_event("session.finished")
    talk.recognize_item("Hello")
    talk.assert_event("conversation.item.input_audio_transcription.completed")
    talk.assert_types("session.finished")


def test_closing_ends_the_answer_for_the_books(talk: Conversation) -> None:
    response_id = talk.ask()
    talk.answer(response_id, "It is noon. The sun shines. ", ms=2000)
    talk.wait(500)
    talk.session.close(talk.now)
    [record] = talk.session.records()
    assert (record.status, record.heard_text, record.is_interrupted) == ("cancelled", "It is", True)
    assert Abandon(response_id=response_id) in talk.session.work_to_start()
    assert talk.session.next_timer() is None
    talk.session.close(talk.now)
    talk.session.tick(talk.now + 100)
    assert talk.session.records() == []


@pytest.mark.parametrize("is_finishing", [False, True])
def test_closing_while_the_caller_speaks_leaves_no_timer(talk: Conversation, is_finishing: bool) -> None:
    talk.say(640)
    item_id = talk.assert_event("input_audio_buffer.speech_started")["item_id"]
    if is_finishing:
        talk.tell("session.finish")
    talk.session.close(talk.now)
    assert talk.session.next_timer() is None
    assert Abandon(item_id=item_id) in talk.session.work_to_start()
