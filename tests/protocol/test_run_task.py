"""The run-task dialect: commands read, tasks counted, and the wrong order refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapp.protocol import run_task as wire


def command(action: str, task_id: Any = "one", streaming: str = "duplex", **payload: Any) -> str:
    header = {"action": action, "task_id": task_id, "streaming": streaming}
    return json.dumps({"header": header, "payload": payload})


def take(tasks: wire.RunTasks, *commands: str) -> None:
    for text in commands:
        tasks.take(wire.read_command(text))


RUN = command("run-task", task="tts", model="cosyvoice-v2", parameters={"voice": "x"})
HEAR = command("run-task", "two", task="asr", model="fun-asr-realtime")


def test_commands_are_read() -> None:
    begun = wire.read_command(RUN)
    assert isinstance(begun, wire.RunTask)
    assert (begun.kind, begun.model, begun.parameters, begun.takes_more) == (
        "tts",
        "cosyvoice-v2",
        {"voice": "x"},
        True,
    )
    whole = wire.read_command(command("run-task", streaming="out", task="tts", model="m", input={"text": "Hi."}))
    assert isinstance(whole, wire.RunTask)
    assert (whole.text, whole.takes_more) == ("Hi.", False)
    assert wire.read_command(command("continue-task", input={"text": "More."})) == wire.ContinueTask(
        task_id="one", text="More."
    )
    assert wire.read_command(command("continue-task", input={"flush": True})) == wire.ContinueTask(
        task_id="one", is_flush=True
    )
    assert wire.read_command(command("finish-task", input={"directive": "cancel"})) == wire.FinishTask(
        task_id="one", is_cancelled=True
    )


@pytest.mark.parametrize(
    ("text", "task_id", "words"),
    [
        ("[", "", "not valid JSON"),
        ("{}", "", "task_id"),
        (command("run-task", 7), "", "'task_id' must be a string"),
        (command("run-task", "x" * 129), "x" * 128, "1 to 128 characters"),
        (command("run-task"), "one", "Missing required field 'task'"),
        (command("run-task", task="asr"), "one", "Missing required field 'model'"),
        (command("run-task", task="asr", model="m", parameters=[]), "one", "'parameters' must be an object"),
        (command("continue-task", input={"text": "x" * 20_001}), "one", "longer than 20,000"),
    ],
)
def test_what_cannot_be_read_names_its_task(text: str, task_id: str, words: str) -> None:
    with pytest.raises(wire.RunTaskError, match=words) as refused:
        wire.read_command(text)
    assert refused.value.task_id == task_id


@pytest.mark.parametrize(
    ("before", "wrong", "words"),
    [
        ([], command("continue-task"), "was not started"),
        ([], command("finish-task"), "was not started"),
        ([RUN], RUN, "running already"),
        ([RUN, command("finish-task")], command("continue-task"), "finished already"),
        ([HEAR], command("continue-task", "two"), "binary frames"),
    ],
)
def test_the_wrong_order_is_refused(before: list[str], wrong: str, words: str) -> None:
    tasks = wire.RunTasks()
    take(tasks, *before)
    with pytest.raises(wire.RunTaskError, match=words):
        take(tasks, wrong)


def test_a_finished_task_may_still_be_cancelled() -> None:
    tasks = wire.RunTasks()
    take(tasks, RUN, command("finish-task"), command("finish-task", input={"directive": "cancel"}))
    assert tasks.open == ("one",)


def test_audio_belongs_to_the_latest_recognition_that_takes_some() -> None:
    tasks = wire.RunTasks()
    assert tasks.hearing is None
    take(tasks, RUN, HEAR, HEAR.replace('"two"', '"three"'))
    assert tasks.hearing == "three"
    take(tasks, command("finish-task", "three"))
    assert tasks.hearing == "two"
    tasks.ended("two")
    assert (tasks.hearing, tasks.open) == (None, ("one", "three"))


def test_an_id_may_be_used_again_and_a_connection_has_few_tasks() -> None:
    tasks = wire.RunTasks()
    for number in range(wire.MAX_TASKS):
        take(tasks, RUN.replace('"one"', f'"{number}"'))
    with pytest.raises(wire.RunTaskError, match="8 tasks are running") as refused:
        take(tasks, RUN)
    assert refused.value.code == "Throttling.Concurrency"
    tasks.ended("0")
    take(tasks, RUN.replace('"one"', '"0"'))


ODD: Any = st.sampled_from([None, True, 7, "", "x", [], {}, {"a": 1}])


def _some(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional={name: ODD | value for name, value in fields.items()})


COMMANDS = _some(
    header=_some(
        action=st.sampled_from(["run-task", "continue-task", "finish-task"]),
        task_id=st.just("one"),
        streaming=st.sampled_from(["duplex", "in", "out"]),
    ),
    payload=_some(
        task=st.sampled_from(["asr", "tts"]),
        model=st.just("m"),
        parameters=_some(format=st.just("pcm")),
        input=_some(text=st.text(max_size=5), flush=st.booleans(), directive=st.just("cancel")),
    ),
)


@given(st.text() | (ODD | COMMANDS).map(json.dumps))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_read_or_refused(text: str) -> None:
    try:
        command = wire.read_command(text)
    except wire.RunTaskError:
        return
    assert isinstance(command, wire.RunCommand)
