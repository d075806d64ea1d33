"""What the built-in assistant does in a conversation with the real server: reminders that speak up, and sources."""

from __future__ import annotations

import base64

from tests.realtime.product import Product
from tests.realtime.talker import call


async def test_a_timer_is_heard_when_it_is_up(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("Set a timer for two seconds.")
        await talker.wait("response.done", count=2)
        said = [event["transcript"] for event in talker.all("response.audio_transcript.done")]
        assert said == ["Your timer is set for 2 seconds.", "Your 2 second timer is up."]
        assert talker.all("response.audio.delta")


async def test_a_timer_is_heard_in_the_session_that_goes_on_after_a_lost_connection(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("Set a timer for one hour.")
        await talker.wait("response.done")
        await talker.ask("Set a timer for thirty seconds.")
        await talker.wait("session.reminders.updated", count=2)
        pending = talker.all("session.reminders.updated")[-1]["reminders"]
        assert [each["name"] for each in pending] == ["the 30 second timer", "the 1 hour timer"]
        talker.socket.transport.abort()
        await talker.wait_closed()
    async with call(product.url, product.keys["good"]) as talker:
        pending[0]["due_in_ms"] = 0  # it was up meanwhile
        await talker.send("session.reminders.restore", reminders=pending)
        await talker.wait("response.done")
        await talker.send("session.reminders.restore", reminders=pending)  # as a client may that is not sure
        await talker.ask("How much time is left?")
        await talker.wait("response.done", count=2)
        rung, left = [event["transcript"] for event in talker.all("response.audio_transcript.done")]
        assert rung == "Your 30 second timer is up."
        assert left == "You have 1 hour for the 1 hour timer." or left.startswith("You have 59 minutes")
        assert [each["name"] for each in talker.all("session.reminders.updated")[-1]["reminders"]] == [
            "the 1 hour timer"
        ]


async def test_the_times_of_words_are_told_within_the_sound(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.send("session.update", session={"word_times": True})
        await talker.wait("session.updated")
        await talker.ask("What is 12 times 12?")
        await talker.wait("response.done")
        (said,) = [event["transcript"] for event in talker.all("response.audio_transcript.done")]
        words = [word for event in talker.all("response.audio.words") for word in event["words"]]
        assert "".join(word["text"] for word in words) == said.rstrip()
        assert len(words) == len(said.split())
        times = [word[at] for word in words for at in ("start_ms", "end_ms")]
        sound = b"".join(base64.b64decode(event["delta"]) for event in talker.all("response.audio.delta"))
        assert times == sorted(times)
        assert times[-1] <= len(sound) / 48 + 100  # it is told before the sound is made


async def test_a_spoken_quotation_comes_with_its_page(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("How do I create an API key?")
        await talker.wait("response.done")
        (source,) = talker.all("response.source.added")
        assert (source["page"], source["title"]) == ("api-keys", "API keys")
        assert "createkey" in source["text"]
        (said,) = [event["transcript"] for event in talker.all("response.audio_transcript.done")]
        assert "createkey" not in said


async def test_each_reply_says_who_wrote_it(product: Product) -> None:
    async with call(product.url, product.keys["good"]) as talker:
        for number, (asked, author) in enumerate((("What is 7 times 8?", "skill"), ("Which API key?", "document"))):
            await talker.ask(asked)
            (item,) = (await talker.wait("response.done", count=number + 1))["response"]["output"]
            assert item["author"] == {"kind": author, "name": "", "may_be_wrong": False}
            added = talker.all("response.output_item.added")[number]["item"]
            assert added["author"] == item["author"], "it is known before the first word"
