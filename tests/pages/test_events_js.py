"""The page and the server call every event by the same name."""

from __future__ import annotations

import re

from django.conf import settings

from voiceapp.protocol.wire.events import CLIENT_EVENTS, SERVER_EVENTS

SOURCE = (settings.BASE_DIR / "static/voice/events.js").read_text()


def names(constant: str) -> set[str]:
    block = re.search(rf"export const {constant} = Object\.freeze\(\{{(.*?)\}}\)", SOURCE, re.S)
    assert block is not None
    return set(re.findall(r'"([^"]+)"', block[1]))


def test_it_knows_every_client_event() -> None:
    assert names("CLIENT") == set(CLIENT_EVENTS)


def test_it_knows_every_server_event() -> None:
    assert names("SERVER") == set(SERVER_EVENTS)
