"""The figures of one turn agree wherever they are shown: on the page, in the export and in the operators' row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from .page import VoicePage
from .server import Server

MARKS = ("end_of_turn_ms", "recognition_ms", "first_token_ms", "first_audio_ms")
STAGES = ("end of turn", "recognition", "first word", "first sound", "playback")


def shown(voice: VoicePage) -> tuple[str, dict[str, int]]:
    """What the page says of the last reply: what the total measures, and the time of each stage."""
    total, *parts = voice.page.locator(".waterfall-legend > span").all_text_contents()
    stages = {name: int(ms) for name, ms in (part.rsplit(" ", 1) for part in parts)}
    found = re.fullmatch(r"heard (\d+) ms (.+)", total)
    assert found is not None, total
    assert int(found[1]) == sum(stages.values())
    return found[2], stages


def exported(voice: VoicePage) -> dict[str, Any]:
    """The last reply in the conversation's JSON file."""
    with voice.page.expect_download() as download:
        voice.page.click("#export-json")
    reply: dict[str, Any] = json.loads(download.value.path().read_text())["items"][-1]
    assert reply["role"] == "assistant"
    return reply


def differences(marks: dict[str, int | None]) -> list[int]:
    """What each stage added, from the marks that there are."""
    reached = [mark for name in MARKS if (mark := marks[name]) is not None]
    return [after - before for before, after in zip([0, *reached], reached, strict=False)]


def test_a_turn_has_the_same_figures_on_the_page_in_its_export_and_in_its_row(
    spoken_page: Callable[..., VoicePage], server: Server
) -> None:
    voice = spoken_page(3.0, "What is two plus two?", address=f"http://127.0.0.1:{server.port}/")
    voice.talk()
    expect(voice.page.locator('.turn[data-role="assistant"][data-state="done"]')).to_have_count(1)
    expect(voice.page.locator(".waterfall-legend")).to_contain_text("playback")
    spoken, reply = shown(voice), exported(voice)
    voice.wait("listening")  # a message in the middle of the reply would interrupt it
    voice.type("What is three plus three?")
    expect(voice.page.locator('.turn[data-role="assistant"][data-state="done"]')).to_have_count(2)
    expect(voice.page.locator(".waterfall-legend")).to_contain_text("after your message")
    expect(voice.page.locator(".waterfall-legend")).to_contain_text("playback")
    typed, second = shown(voice), exported(voice)

    assert spoken[0] == "after the end of your speech"
    assert typed[0] == "after your message"
    assert tuple(spoken[1]) == STAGES
    assert tuple(typed[1]) == STAGES[2:]
    for ordinal, (_, stages), item in ((1, spoken, reply), (2, typed, second)):
        assert item["stages_ms"] == stages
        assert differences(item["metrics"]) == list(stages.values())[:-1]
        row = server.row(
            f"select {', '.join(MARKS)}, is_spoken from realtime_turn where ordinal = {ordinal} and session_id ="
            " (select id from realtime_realtimesession order by started_at desc limit 1)"
        )
        assert row == (*(item["metrics"][name] for name in MARKS), ordinal == 1)
    assert (reply["counted_from"], second["counted_from"]) == ("the end of your speech", "your message")
