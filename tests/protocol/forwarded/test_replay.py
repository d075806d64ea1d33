"""What a session that is begun again is told of the one before."""

from __future__ import annotations

from typing import Any

from voiceapp.protocol.forwarded.replay import (
    MAX_ITEMS,
    MAX_MESSAGES,
    MAX_SETTINGS_CHARACTERS,
    MAX_SILENCE_MS,
    MAX_SPEECH_MS,
    AudioReplay,
    ConversationReplay,
)


def message(item_id: str, role: str, words: str, kind: str = "input_text") -> dict[str, Any]:
    part = {"type": kind, "transcript" if "audio" in kind else "text": words}
    return {"id": item_id, "object": "realtime.item", "type": "message", "role": role, "content": [part]}


def created(item: dict[str, Any], previous: str | None = None) -> dict[str, Any]:
    return {"type": "conversation.item.created", "item": item, "previous_item_id": previous}


def told(kept: ConversationReplay) -> list[tuple[str, str]]:
    return [
        (item["id"], item["content"][0]["text"] if item["type"] == "message" else item.get("output", "call"))
        for item in kept.items()
    ]


def test_items_stand_in_their_order_with_the_words_that_were_heard() -> None:
    kept = ConversationReplay({})
    kept.follow(created(message("b", "user", "", "input_audio")))
    kept.follow(created(message("c", "assistant", "", "audio"), "b"))
    kept.follow(created(message("a", "system", "Be kind."), "root"))
    kept.follow(created(message("d", "user", "Bye."), "c"))
    spoken = "conversation.item.input_audio_transcription.completed"
    kept.follow({"type": spoken, "item_id": "b", "transcript": "Hi."})
    kept.follow({"type": "response.output_item.done", "item": message("c", "assistant", "Hello there.", "audio")})
    kept.follow({"type": "conversation.item.truncated", "item_id": "c", "transcript": "Hello"})
    kept.follow({"type": "conversation.item.deleted", "item_id": "d"})
    assert told(kept) == [("a", "Be kind."), ("b", "Hi."), ("c", "Hello")]
    assert [item["content"][0]["type"] for item in kept.items()] == ["input_text", "input_text", "text"]


def test_an_item_without_words_and_a_call_without_an_output_are_left_out() -> None:
    kept = ConversationReplay({})
    kept.follow(created(message("a", "user", "", "input_audio")))
    for number in ("1", "2"):
        call = {"id": f"call_{number}", "type": "function_call", "call_id": number, "name": "f", "arguments": "{}"}
        kept.follow(created(call))
    kept.follow(created({"id": "out", "type": "function_call_output", "call_id": "2", "output": "done"}))
    assert told(kept) == [("call_2", "call"), ("out", "done")]


def test_settings_count_when_the_service_has_taken_them() -> None:
    kept = ConversationReplay({"voice": "anna"})
    kept.sent({"type": "session.update", "event_id": "1", "session": {"voice": 7}})
    kept.sent({"type": "session.update", "event_id": "2", "session": {"turn_detection": {"threshold": 0.5}}})
    kept.sent({"type": "session.update", "event_id": "3", "session": {"turn_detection": {"type": "server_vad"}}})
    kept.follow({"type": "error", "error": {"param": "session.voice", "event_id": "1"}})
    kept.follow({"type": "session.updated", "session": {}})
    kept.follow({"type": "session.updated", "session": {}})
    assert kept.settings == {"voice": "anna", "turn_detection": {"threshold": 0.5, "type": "server_vad"}}
    assert kept.unanswered == ()


def test_what_the_service_created_itself_answers_nobody() -> None:
    kept = ConversationReplay({})
    asked = {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": []}}
    kept.sent(asked)
    kept.follow(created(message("a", "user", "", "input_audio")))
    kept.follow(created(message("b", "assistant", "", "audio")))
    assert kept.unanswered == (asked,)
    kept.follow(created(message("c", "user", "Hi.")))
    assert kept.unanswered == ()
    kept.sent({"type": "conversation.item.create", "item": {"id": "d", "type": "message", "role": "user"}})
    kept.follow(created(message("d", "user", "", "input_audio")))
    assert kept.unanswered == ()


def test_garbage_is_not_kept() -> None:
    kept = ConversationReplay({})
    for item in (None, 7, {}, {"id": 7}, {"id": "a", "type": "function_call_output"}, {"id": "b", "content": "x"}):
        kept.follow({"type": "conversation.item.created", "item": item})
    for event in ("error", "conversation.item.deleted", "conversation.item.truncated", "session.updated"):
        kept.follow({"type": event})
    assert kept.items() == []


def test_no_more_of_the_settings_is_kept_than_stated() -> None:
    kept = ConversationReplay({})
    for number in range(20):
        kept.sent({"type": "session.update", "session": {f"x{number}": "x" * (MAX_SETTINGS_CHARACTERS // 4)}})
        kept.follow({"type": "session.updated", "session": {}})
    assert list(kept.settings) == ["x0", "x1", "x2"]


def test_pictures_are_not_kept() -> None:
    kept = ConversationReplay({})
    picture = {"type": "input_image", "image_url": "data:" + "x" * 1000}
    seen = {**message("a", "user", "What is this?"), "image": "x" * 1000}
    seen["content"].append(picture)
    kept.follow(created(seen))
    assert told(kept) == [("a", "What is this?")]
    assert "xxx" not in repr(vars(kept))


def test_a_call_whose_id_is_no_text_is_left_out() -> None:
    kept = ConversationReplay({})
    kept.follow(created({"id": "a", "type": "function_call", "call_id": ["1"], "name": "f", "arguments": "{}"}))
    kept.follow(created({"id": "b", "type": "function_call_output", "call_id": "1", "output": "done"}))
    kept.follow(created({"id": "c", "type": "message", "role": "user", "content": []}))
    kept.follow(created({"id": "c", "type": "function_call_output", "call_id": {"x": 1}}))
    assert told(kept) == [("b", "done")]


def test_the_oldest_items_are_forgotten() -> None:
    kept = ConversationReplay({})
    for number in range(MAX_ITEMS + 5):
        kept.follow(created(message(str(number), "user", "Hi.")))
    assert (len(kept.items()), kept.items()[0]["id"]) == (MAX_ITEMS, "5")


def test_of_the_callers_audio_a_second_is_kept_or_what_is_being_said() -> None:
    audio = AudioReplay()
    for number in range(200):
        audio.push(str(number), 20)
    assert len(audio.messages()) == MAX_SILENCE_MS / 20
    audio.is_open = True
    for number in range(2000):
        audio.push(str(number), 20)
    assert len(audio.messages()) == MAX_SPEECH_MS / 20
    audio.forget()
    assert audio.messages() == []


def test_messages_without_sound_do_not_pile_up() -> None:
    audio = AudioReplay()
    for number in range(MAX_MESSAGES + 50):
        audio.push(str(number), 0)
    assert len(audio.messages()) == MAX_MESSAGES
