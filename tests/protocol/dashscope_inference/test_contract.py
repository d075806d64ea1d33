"""The contract tables of the inference dialect are those of the library as it is installed, and all of it is served."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from tests.protocol.dashscope_inference.contract import CLASSES, TABLE, table
from tests.protocol.dashscope_inference.exchanges import Json, answers
from tests.protocol.dashscope_realtime.contract import paths

NOT_SENT = {"payload.output.finished"}
"""What a task has come to is told by its events alone."""
RUN, RUN_WHOLE, FINISH = (
    {"header": {"action": action, "task_id": "one", "streaming": streaming}}
    for action, streaming in (("run-task", "duplex"), ("run-task", "out"), ("finish-task", "duplex"))
)
REFUSED = "refused: Recognition takes audio in binary frames, not continue-task."


def test_the_tables_are_those_of_the_library() -> None:
    written = TABLE.read_text(encoding="utf-8").splitlines()
    assert table().splitlines() == written, "Read what changed, then: python -m tests.contracts --write"


def test_every_command_is_read_but_the_context_of_a_recognition() -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `") and line.count(" | ") == 4]
    assert len(rows) == 13
    assert [row.split(" | ")[::4] for row in rows if not row.endswith("| read |")] == [
        ["| `update_context`", f"{REFUSED} |"]
    ]


def test_every_field_that_is_read_is_sent() -> None:
    sent: dict[str, set[str]] = defaultdict(set)
    for begun, fails in product((RUN, RUN_WHOLE, FINISH), (False, True)):
        for event in answers(begun, fails=fails):
            sent[event["header"]["event"]].update(ways(event))
    for exchange in CLASSES.values():
        for kind, read in exchange().read.items():
            assert read - sent[kind] <= NOT_SENT, kind


def ways(event: Json) -> Iterator[str]:
    """The fields of an event, and the objects that they are in."""
    for path in paths(event):
        names = path.split(".")
        yield from (".".join(names[: count + 1]) for count in range(len(names)))
