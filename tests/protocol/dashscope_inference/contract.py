"""The contract of the inference dialect as tables, drawn from what the classes of the vendor's library send and read.

`make contracts` shows what a new release of the library changed, `python -m tests.contracts --write` writes it anew.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dashscope.audio.asr import Recognition
from dashscope.audio.tts import SpeechSynthesizer as OlderSynthesizer
from dashscope.audio.tts_v2 import SpeechSynthesizer

from tests.protocol.dashscope_inference import exchanges
from tests.protocol.dashscope_realtime.contract import Json, paths
from voiceapp.protocol.run_task import RunTaskError, RunTasks, read_command

TABLE = Path(__file__).resolve().parents[3] / "docs" / "contracts" / "dashscope-inference.md"
HEAD = """# The vendor's inference dialect

What the classes of the `dashscope` library for Python send on the inference address, where recognition and synthesis
run as tasks, and what they read of the events that this server sends there.

"""
CLASSES: dict[type[Any], exchanges.Exchange] = {
    Recognition: exchanges.recognition,
    SpeechSynthesizer: exchanges.synthesis,
    OlderSynthesizer: exchanges.older_synthesis,
}


def table() -> str:
    """The whole file."""
    return HEAD + "\n".join("".join(_of_class(kind, exchange)) for kind, exchange in CLASSES.items())


def _of_class(kind: type[Any], exchange: exchanges.Exchange) -> Iterator[str]:
    told = exchange()
    yield f"## `{kind.__module__.rpartition('.')[0]}.{kind.__name__}`\n\n"
    yield "| Method | Parameters | What it sends | Fields | Here |\n|---|---|---|---|---|\n"
    yield from dict.fromkeys(_rows(kind, told))
    yield "\n| Event | Fields that it reads |\n|---|---|\n"
    for event, read in sorted(told.read.items()):
        yield f"| `{event}` | {_listed(sorted(innermost(read)))} |\n"


def _rows(kind: type[Any], told: exchanges.Told) -> Iterator[str]:
    tasks = RunTasks()
    for method, sent in told.sent:
        parameters = [name for name in inspect.signature(getattr(kind, method)).parameters if name != "self"]
        if isinstance(sent, bytes):
            about = "audio in a binary frame | none | read"
        else:
            fields = sorted(path for path in paths(sent) if path != "header.action")
            about = f"`{sent['header']['action']}` | {_listed(fields)} | {_here(tasks, sent)}"
        yield f"| `{method}` | {_listed(parameters)} | {about} |\n"


def innermost(read: set[str]) -> set[str]:
    """Fields without those that are only the way to others."""
    return {path for path in read if not any(other.startswith(f"{path}.") for other in read)}


def _here(tasks: RunTasks, sent: Json) -> str:
    try:
        tasks.take(read_command(json.dumps(sent)))
    except RunTaskError as refused:
        return f"refused: {refused.message}"
    return "read"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
