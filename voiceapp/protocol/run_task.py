"""The run-task dialect: several tasks of recognition or synthesis on one connection, each with an id that its client
chose. Sans-I/O: JSON frames to commands, commands against the states of the tasks, and what the server says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from voiceapp.protocol.states import step
from voiceapp.protocol.wire.reading import EventError, Fields, JsonObject, parse_fields, tidy

RECOGNITION = "asr"
SYNTHESIS = "tts"
MAX_TEXT = 20_000
"""Characters in one command."""
MAX_TASKS = 8
"""Tasks at once on one connection."""
MAX_TASK_ID = 128


class RunState(Enum):
    RUNNING = "running"
    FINISHING = "finishing"
    """The client will send nothing more; what is under way is completed."""


RUN_STEPS: dict[tuple[RunState, str], RunState] = {  # a task that is over has no state
    (RunState.RUNNING, "continue-task"): RunState.RUNNING,
    (RunState.RUNNING, "finish-task"): RunState.FINISHING,
    (RunState.FINISHING, "finish-task"): RunState.FINISHING,  # a cancel may follow
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    action = "run-task"
    task_id: str
    kind: str
    """`asr` or `tts`."""
    model: str
    parameters: JsonObject = field(default_factory=dict)
    text: str = ""
    """Text to be spoken, where it comes with the command."""
    takes_more: bool = True
    """More input follows, up to a `finish-task`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueTask:
    """More text to be spoken."""

    action = "continue-task"
    task_id: str
    text: str = ""
    is_flush: bool = False
    """True if the text so far is to be spoken now, whole sentence or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTask:
    """Nothing more follows."""

    action = "finish-task"
    task_id: str
    is_cancelled: bool = False
    """True if the speech under way is to be dropped."""


RunCommand = RunTask | ContinueTask | FinishTask


class RunTaskError(EventError):
    """A command that is refused; `task_id` is that of the task which fails with it, empty when it names none."""

    def __init__(self, message: str, *, code: str = "InvalidParameter", param: str | None = None, task_id: str = ""):
        super().__init__(message, code=code, param=param)
        self.task_id = task_id


def read_command(text: str) -> RunCommand:
    """The command in one text frame.

    Raises:
        RunTaskError: if it cannot be read.
    """
    task_id = ""
    try:
        wire = tidy(parse_fields(text))
        header, payload = _inner(wire, "header"), _inner(wire, "payload")
        task_id = header.string("task_id")
        if not 0 < len(task_id) <= MAX_TASK_ID:
            raise EventError(f"header.task_id must have 1 to {MAX_TASK_ID} characters.", param="header.task_id")
        action = header.string("action")
        given = _inner(payload, "input")
        if action == RunTask.action:
            return _run(task_id, header, payload, given)
        if action == ContinueTask.action:
            return ContinueTask(task_id=task_id, text=_text(given), is_flush=given.message.get("flush") is True)
        if action == FinishTask.action:
            return FinishTask(task_id=task_id, is_cancelled=given.maybe_string("directive") == "cancel")
        raise EventError(f"header.action '{action[:40]}' is unknown: run-task, continue-task or finish-task.")
    except EventError as refused:
        raise RunTaskError(refused.message, param=refused.param, task_id=task_id[:MAX_TASK_ID]) from None


def _run(task_id: str, header: Fields, payload: Fields, given: Fields) -> RunTask:
    kind = payload.string("task")
    if kind not in (RECOGNITION, SYNTHESIS):
        raise EventError(f"payload.task '{kind[:40]}' is unknown: it must be asr or tts.", param="payload.task")
    streaming = header.maybe_string("streaming") or "duplex"
    return RunTask(
        task_id=task_id,
        kind=kind,
        model=payload.string("model"),
        parameters=payload.maybe_object("parameters") or {},
        text=_text(given),
        takes_more=streaming in ("duplex", "in"),
    )


def _inner(of: Fields, name: str) -> Fields:
    return Fields(of.maybe_object(name) or {}, None)


def _text(given: Fields) -> str:
    text = given.maybe_string("text") or ""
    if len(text) > MAX_TEXT:
        raise EventError(
            f"payload.input.text is longer than {MAX_TEXT:,} characters: send it in pieces.", param="payload.input.text"
        )
    return text


class RunTasks:
    def __init__(self) -> None:
        self._states: dict[str, RunState] = {}
        self._kinds: dict[str, str] = {}

    @property
    def hearing(self) -> str | None:
        """The task to which audio belongs: the latest recognition that still takes some."""
        running = [name for name, state in self._states.items() if state is RunState.RUNNING]
        return next((name for name in reversed(running) if self._kinds[name] == RECOGNITION), None)

    def take(self, command: RunCommand) -> None:
        """Count a command.

        Raises:
            RunTaskError: if it does not fit what its task has come to.
        """
        task_id = command.task_id
        state = self._states.get(task_id)
        if isinstance(command, RunTask):
            self._begin(command, state)
        elif state is None:
            raise RunTaskError(
                f"{command.action}: the task was not started, or is over. Send run-task first.", task_id=task_id
            )
        elif (state, command.action) not in RUN_STEPS:
            raise RunTaskError(f"{command.action}: the task was finished already.", task_id=task_id)
        elif isinstance(command, ContinueTask) and self._kinds[task_id] == RECOGNITION:
            raise RunTaskError("Recognition takes audio in binary frames, not continue-task.", task_id=task_id)
        else:
            self._states[task_id] = step(RUN_STEPS, state, command.action)

    def _begin(self, command: RunTask, state: RunState | None) -> None:
        if state is not None:
            raise RunTaskError("run-task: a task with this id is running already.", task_id=command.task_id)
        if len(self._states) >= MAX_TASKS:
            raise RunTaskError(
                f"run-task: {MAX_TASKS} tasks are running on this connection; wait until one is over.",
                code="Throttling.Concurrency",
                task_id=command.task_id,
            )
        self._states[command.task_id] = RunState.RUNNING
        self._kinds[command.task_id] = command.kind

    def ended(self, task_id: str) -> None:
        """The task is over; its id may be used again."""
        self._states.pop(task_id, None)
        self._kinds.pop(task_id, None)

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(self._states)


# ── What the server says ─────────────────────────────────────────────────────────────────────────────────────────────


def task_started(task_id: str) -> JsonObject:
    """The task runs: audio or text may follow."""
    return _event(task_id, "task-started", {})


def result_generated(task_id: str, output: JsonObject, usage: JsonObject | None = None) -> JsonObject:
    """A sentence so far, or whole."""
    return _event(task_id, "result-generated", {"output": output, **({} if usage is None else {"usage": usage})})


def task_finished(task_id: str, usage: JsonObject, *, has_output: bool = True) -> JsonObject:
    """The task is over. Where its client sent everything at once, the library wants no output here."""
    return _event(task_id, "task-finished", {"output": {} if has_output else None, "usage": usage})


def task_failed(task_id: str, code: str, message: str) -> JsonObject:
    """The task is over; nothing follows of it."""
    return _event(task_id, "task-failed", {}, error_code=code, error_message=message)


def sentence(number: int, text: str, *, begin_ms: int, end_ms: int | None = None) -> JsonObject:
    """`output` of a recognised sentence; without `end_ms` it goes on. Times of single words are not known."""
    about: JsonObject = {
        "sentence_id": number,
        "begin_time": begin_ms,
        "end_time": end_ms,
        "text": text,
        "words": [],
        "sentence_end": end_ms is not None,
        "heartbeat": False,
    }
    return {"sentence": about}


def _event(task_id: str, name: str, payload: JsonObject, **about: str) -> JsonObject:
    return {"header": {"task_id": task_id, "event": name, **about, "attributes": {}}, "payload": payload}
