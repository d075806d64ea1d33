"""The contract table of OpenAI's dialect is that of the library as it is installed, and leaves no event open."""

from __future__ import annotations

from tests.protocol.openai_realtime.contract import TABLE, table


def test_the_table_is_that_of_the_library() -> None:
    written = TABLE.read_text(encoding="utf-8").splitlines()
    assert table().splitlines() == written, "Read what changed, then: python -m tests.contracts --write"


def test_every_event_has_its_place() -> None:
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert [line for line in rows if line.endswith("| unknown |")] == []
