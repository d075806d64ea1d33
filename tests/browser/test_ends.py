"""What the books say of conversations that people end in the ordinary ways."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import OpenPage
from .page import VoicePage
from .server import Server

FINISHED = (1000, "The session is finished.")
LEFT = (1001, "The caller left.")


def press_end(voice: VoicePage) -> None:
    voice.page.click("#end")


def reload_the_page(voice: VoicePage) -> None:
    voice.page.reload()


def follow_a_link(voice: VoicePage) -> None:
    voice.page.click(".brand")


def close_the_tab(voice: VoicePage) -> None:
    voice.page.close()


@pytest.mark.parametrize(
    ("transport", "end", "told"),
    [
        ("websocket", press_end, FINISHED),
        ("websocket", reload_the_page, LEFT),
        ("websocket", follow_a_link, LEFT),
        ("websocket", close_the_tab, LEFT),
        ("webrtc", press_end, FINISHED),
        ("webrtc", close_the_tab, LEFT),
    ],
)
def test_an_ordinary_end_is_written_down_as_what_it_was(
    open_page: OpenPage, server: Server, transport: str, end: Callable[[VoicePage], None], told: tuple[int, str]
) -> None:
    before = {row[0] for row in server.rows("select id from realtime_realtimesession")}
    voice = open_page(f"http://127.0.0.1:{server.port}/", transport=transport)
    voice.type("What can you do?")  # the assistant is in the middle of a reply
    voice.wait("ai-speaking")

    end(voice)

    listed = ", ".join(f"'{known}'" for known in before)
    query = "select close_code, close_reason from realtime_realtimesession where ended_at is not null"
    assert server.row(f"{query} and id not in ({listed})") == told
