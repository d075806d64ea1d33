"""The contract tables of the vendor's dialects are those of the library as it is installed, and all of it is read."""

from __future__ import annotations

import json

from tests.protocol.dashscope_realtime.contract import TABLE, conversation, reader, sent_by, table
from voiceapp.protocol.read_aloud import READ_ALOUD
from voiceapp.protocol.wire.events import CLIENT_EVENTS, parse_client_event


def test_the_tables_are_those_of_the_library() -> None:
    written = TABLE.read_text(encoding="utf-8").splitlines()
    assert table().splitlines() == written, "Read what changed, then: python -m tests.contracts --write"


def test_every_event_of_a_conversation_is_read() -> None:
    kinds = set()
    for _, _, event in sent_by(conversation()):
        assert isinstance(parse_client_event(json.dumps(event)), CLIENT_EVENTS[event["type"]])
        kinds.add(event["type"])
    assert {"session.update", "input_audio_buffer.append", "response.create", "session.finish"} <= kinds


def test_every_event_of_a_reader_is_read() -> None:
    kinds = {READ_ALOUD.read(json.dumps(event)).type for _, _, event in sent_by(reader())}
    assert {"session.update", "input_text_buffer.append", "response.cancel", "session.finish"} <= kinds
