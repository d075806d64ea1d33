"""What was heard ends at the word, where the voice knows when it says it; and the client may know, too."""

from __future__ import annotations

import pytest

from tests.protocol.conversations import Conversation
from voiceapp.protocol.work import ReplyWords, SpokenText

TOLD = "response.audio.words"
TEXT = "One two three. Four five."


def replying(*, asks: bool) -> tuple[Conversation, str]:
    """Three words, the second after a second, and a sentence of a voice that knows no times."""
    talk = Conversation(word_times=asks)
    response_id = talk.ask()
    talk.write(response_id, TEXT)
    times = (SpokenText(3, 50, 300), SpokenText(7, 1000.4, 1300), SpokenText(14, 1350, 2100))
    talk.session.done(ReplyWords(response_id, times), talk.now)
    talk.speak(response_id, 2000, characters=15)
    talk.speak(response_id, 1000, characters=len(TEXT))
    talk.end(response_id)
    return talk, response_id


def test_who_asks_for_the_times_of_words_gets_them_before_the_sound() -> None:
    talk, response_id = replying(asks=True)
    talk.wait(4000)
    told = [event for event in talk.events if event["type"] == TOLD]
    words = [word for event in told for word in event["words"]]
    assert [(word["text"], word["start_ms"], word["end_ms"]) for word in words] == [
        ("One", 50, 300), (" two", 1000, 1300), (" three.", 1350, 2100), (" Four five.", 2000, 3000),
    ]  # fmt: skip
    assert {event["response_id"] for event in told} == {response_id}
    kinds = [event["type"] for event in talk.events]
    assert kinds.index("response.audio_transcript.delta") < kinds.index(TOLD) < kinds.index("response.audio.delta")


def test_who_does_not_ask_for_them_is_not_told() -> None:
    talk, _ = replying(asks=False)
    talk.wait(4000)
    assert TOLD not in {event["type"] for event in talk.events}


@pytest.mark.parametrize(
    ("heard_ms", "heard"),
    [(200, ""), (400, "One"), (1250, "One"), (1310, "One two"), (1900, "One two"), (2000, "One two three. ")],
)
def test_a_reply_that_is_cut_keeps_the_words_that_were_heard(heard_ms: int, heard: str) -> None:
    talk, _ = replying(asks=False)
    talk.wait(2500)
    item = next(event["item"] for event in talk.events if event["type"] == "response.output_item.added")
    talk.tell("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=heard_ms)
    cut = [event for event in talk.events if event["type"] == "conversation.item.truncated"]
    assert (cut[-1]["transcript"], cut[-1]["unheard"]) == (heard, TEXT[len(heard) :])
