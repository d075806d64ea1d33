"""Conversations of each dialect, event by event, from which the reference takes its examples and its sequences.

`python -m tests.docs.recorded_events` writes them anew, after a change of events.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.protocol.conversations import Conversation, Wire
from voiceapp.protocol import run_task
from voiceapp.protocol.configuration import TurnDetection
from voiceapp.protocol.openai_realtime.dialect import OpenAIRealtimeDialect
from voiceapp.protocol.openai_realtime.older import OlderDialect
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.wire.dialects import OWN, Dialect
from voiceapp.protocol.work import ListTools, ReplyToolCall, Respond, ToolsListed

FILE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "events.json"
DIALECTS: dict[str, Callable[[], Dialect]] = {
    "own": lambda: OWN,
    "openai": OpenAIRealtimeDialect,
    "beta": OlderDialect,
}
SHOWN = 24
"""Characters of audio that an example shows."""
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Recorded(Conversation):
    """A conversation that keeps what client and server say, in the words of one dialect."""

    def __init__(self, dialect: str, **settings: Any) -> None:
        self.name = dialect
        self._dialect = DIALECTS[dialect]()
        self.lines: list[list[Any]] = []
        super().__init__(**settings)

    def tell_text(self, text: str) -> None:
        wire = json.loads(text)
        del wire["event_id"]
        self._keep("client", wire)
        if (event := self._dialect.read(text)) is not None:
            try:
                self.session.receive(event, self.now)
            except ev.EventError as refused:
                self.session.refuse(refused, refused.event_id)
        self.collect()

    def collect(self) -> None:
        told = len(self.events)
        events = self.session.events_to_send()
        self.session.events_to_send = lambda: events  # type: ignore[method-assign]
        super().collect()
        del self.session.events_to_send
        assert len(self.events) >= told
        for event in events:
            if isinstance(event, ev.ServerEvent):
                self.told(event)

    def told(self, event: ev.ServerEvent) -> None:
        for wire in self._dialect.write(event):
            self._keep("server", wire)

    def sound(self, ms: int, *, speech: bool = True) -> None:
        self._keep("client", {"type": "input_audio_buffer.append", "audio": "AAAA"})
        self.say(ms) if speech else self.hush(ms)

    def configure(self, own: Wire, openai: Wire) -> None:
        self.update(**({"type": "realtime", **openai} if self.name == "openai" else own))

    def _keep(self, by: str, wire: Wire) -> None:
        for name in ("delta", "audio"):
            if isinstance(wire.get(name), str) and "audio" in wire["type"] and "transcript" not in wire["type"]:
                wire = {**wire, name: wire[name][:SHOWN]}
        text = re.sub(r'"event_id": "(mine|event_[0-9a-f]{24})"', '"event_id": "event_1"', json.dumps(wire))
        self.lines.append([by, json.loads(text)])


def typed(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.configure({"modalities": ["text"]}, {"output_modalities": ["text"]})
    talk.answer(talk.ask_in_writing(), ms=0)
    talk.tell("session.finish")
    return talk


def spoken(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.sound(512)
    talk.recognize_partly("What time")
    talk.sound(512)
    talk.recognize_partly("What time is")
    talk.sound(960, speech=False)
    talk.recognize("What time is it?")
    talk.answer(talk.take(Respond).response_id, ms=600)
    talk.wait(2000)
    return talk


def interrupted(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.sound(640)
    talk.sound(960, speech=False)
    talk.recognize("Tell me about the tides.")
    talk.answer(talk.take(Respond).response_id, "The moon pulls at the water. ", ms=6000)
    talk.wait(1000)
    talk.sound(640)
    return talk


def ducked(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.update(interruptions="duck", word_times=True, **({"type": "realtime"} if dialect == "openai" else {}))
    talk.answer(talk.ask_in_writing("Tell me about the tides."), "The moon pulls at the water. ", ms=3000)
    talk.wait(1000)
    talk.sound(320)
    talk.hush(192)
    talk.recognize("Yes.")
    talk.wait(4000)
    return talk


def function_called(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.configure({"tools": [WEATHER]}, {"tools": [WEATHER]})
    response_id = talk.ask_in_writing("Will it rain in Lima?")
    talk.call(response_id, 0, "call_1", "weather", '{"city": "Lima"}')
    talk.end(response_id, "tool_calls")
    output = {"type": "function_call_output", "call_id": "call_1", "output": '{"rain": false}'}
    talk.tell("conversation.item.create", item=output)
    talk.tell("response.create")
    talk.answer(talk.take(Respond).response_id, "It stays dry in Lima. ", ms=600)
    talk.wait(2000)
    return talk


def server_tools(dialect: str) -> Recorded:
    talk = Recorded(dialect, mcp_servers=(("home", ""), ("away", "")))
    tools = [{"type": "mcp", "server_label": label, "require_approval": "never"} for label in ("home", "away")]
    talk.configure({"tools": tools}, {"tools": tools})
    lamp = {"name": "lights_on", "description": "Switch the lights on", "input_schema": {"type": "object"}}
    talk.session.done(ToolsListed(talk.take(ListTools), [lamp]), talk.now)
    talk.session.done(ToolsListed(talk.take(ListTools), None), talk.now)
    response_id = talk.ask_in_writing("Lights on, please.")
    outcomes: dict[str, dict[str, Any]] = {"call_1": {"error": "The lamp is broken."}, "call_2": {"output": "Done."}}
    for call_id, came in outcomes.items():
        call = ReplyToolCall(response_id, call_id, "home", "lights_on", "{}")
        talk.session.done(call, talk.now)
        talk.session.done(replace(call, **came), talk.now)
    talk.answer(response_id, "They are on. ", ms=600)
    talk.wait(2000)
    return talk


def by_hand(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.configure({"turn_detection": None}, {"audio": {"input": {"turn_detection": None}}})
    talk.sound(640)
    talk.tell("input_audio_buffer.clear")
    talk.tell("input_image_buffer.append", image="/9j/4AAQ…")
    talk.sound(640)
    talk.tell("input_audio_buffer.commit")
    talk.recognize("What time is it?")
    talk.tell("response.create")
    talk.take(Respond)
    talk.tell("response.cancel")
    return talk


def items(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.answer(talk.ask_in_writing(), ms=600)
    talk.wait(2000)
    reply = talk.events[-1]["response"]["output"][0]["id"]
    talk.tell("conversation.item.retrieve", item_id=reply)
    talk.tell("conversation.item.truncate", item_id=reply, content_index=0, audio_end_ms=300)
    talk.tell("conversation.item.delete", item_id=reply)
    talk.tell("conversation.item.delete", item_id=reply)
    return talk


def silent(dialect: str) -> Recorded:
    talk = Recorded(dialect, turn_detection=TurnDetection(idle_timeout_ms=6000))
    talk.sound(640)
    talk.sound(960, speech=False)
    talk.fail_recognition()
    talk.answer(talk.ask_in_writing(), ms=600)
    talk.hush(9000)
    return talk


def resumed(dialect: str) -> Recorded:
    talk = Recorded(dialect)
    talk.told(ev.SessionResumable(event_id="event_2", token="…", grace_s=20.0))
    talk.told(ev.SessionResumed(event_id="event_0", received=3))
    left = {"id": "timer_1", "name": "tea", "text": "Your tea timer is over.", "due_in_ms": 90_000}
    talk.tell("session.reminders.restore", reminders=[left])
    talk.told(
        ev.SourceAdded(event_id="event_9", response_id="resp_7", title="Voices", text="Settings has them.", page="")
    )
    talk.told(ev.SessionClosing(event_id="event_10", code=4000, reason="The session has reached its longest duration."))
    return talk


Lines = list[tuple[str, Wire | None]]
"""Who says what in a connection of tasks; None is a binary frame."""


def recognised() -> Lines:
    begun = command("run-task", task_group="audio", task="asr", model="moonshine-tiny-en", function="recognition")
    begun["payload"]["parameters"] = {"format": "pcm", "sample_rate": 16000, "language_hints": ["en"]}
    partly = run_task.sentence(1, "What time", begin_ms=320)
    whole = run_task.sentence(1, "What time is it?", begin_ms=320, end_ms=1500)
    return [
        ("client", begun),
        ("server", run_task.task_started(TASK)),
        ("client", None),
        ("server", run_task.result_generated(TASK, partly)),
        ("client", None),
        ("server", run_task.result_generated(TASK, whole, {"duration": 2})),
        ("client", command("finish-task")),
        ("server", run_task.task_finished(TASK, {"duration": 2})),
    ]


def synthesised() -> Lines:
    begun = command("run-task", task_group="audio", task="tts", model="hibari", function="SpeechSynthesizer")
    begun["payload"]["parameters"] = {"voice": "woman", "format": "mp3", "sample_rate": 22050, "rate": 1, "volume": 50}
    text = command("continue-task")
    text["payload"]["input"] = {"text": "Good morning.", "flush": False}
    return [
        ("client", begun),
        ("server", run_task.task_started(TASK)),
        ("client", text),
        ("server", None),
        ("client", command("finish-task")),
        ("server", None),
        ("server", run_task.task_finished(TASK, {"characters": 13})),
    ]


def refused() -> Lines:
    unknown = command("continue-task")
    try:
        run_task.RunTasks().take(run_task.read_command(json.dumps(unknown)))
    except run_task.RunTaskError as error:
        return [("client", unknown), ("server", run_task.task_failed(TASK, error.code, error.message))]
    raise AssertionError("the task was never started")


TASK = "2bf83b9abaeb4fdaaf1f40f9dbd2a1b5"


def command(action: str, **payload: str) -> Wire:
    header = {"action": action, "task_id": TASK, "streaming": "duplex"}
    made = {"header": header, "payload": {**payload, "input": {}}}
    return made


TASK_SCENES: dict[str, Callable[[], Lines]] = {
    "Recognition": recognised,
    "Synthesis": synthesised,
    "A task that fails": refused,
}
SCENES: dict[str, Callable[[str], Recorded]] = {
    "A typed turn": typed,
    "A spoken turn": spoken,
    "An interruption": interrupted,
    "A sound that may interrupt": ducked,
    "A function call": function_called,
    "Tools of an MCP server": server_tools,
    "Turns ended by the client": by_hand,
    "Items": items,
    "A silent caller": silent,
    "A resumed session": resumed,
}


def recorded() -> str:
    """The whole file: of each dialect an example of every event, and of each conversation what comes after what."""
    told: dict[str, Any] = {
        dialect: {title: scene(dialect).lines for title, scene in SCENES.items()} for dialect in DIALECTS
    }
    told["run-task"] = {title: scene() for title, scene in TASK_SCENES.items()}
    return json.dumps({dialect: _told(scenes) for dialect, scenes in told.items()}, indent=1, ensure_ascii=False) + "\n"


def _told(scenes: dict[str, Any]) -> Wire:
    examples: dict[str, Wire] = {"client": {}, "server": {}}
    sequences: dict[str, list[str]] = {}
    for title, told in scenes.items():
        for by, event in told:
            if event is not None:
                examples[by].setdefault(kind_of(event), event)
        steps = itertools.groupby(f"{by} {kind_of(event)}" for by, event in told)
        sequences[title] = [step for step, _ in steps]
    return {"examples": examples, "sequences": sequences}


def kind_of(event: Wire | None) -> str:
    """The event's name; a frame of sound has `binary`."""
    if event is None:
        return "binary"
    header = event.get("header", {})
    return str(event.get("type") or header.get("action") or header.get("event"))


if __name__ == "__main__":
    FILE.write_text(recorded())
