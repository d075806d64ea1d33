"""Kinds of task: their input, their parts, and how they are run.

A kind is written by the room that can do the work, such as transcription in `speech`. The
setting `TASK_KINDS` names them, so that the tasks know none of these rooms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, runtime_checkable

from django.conf import settings
from django.utils.module_loading import import_string

from voiceapp.accounts.auth import Caller
from voiceapp.errors import NotFound
from voiceapp.http.schemas import Schema
from voiceapp.tasks.work.context import TaskContext


@dataclass(frozen=True, slots=True)
class Payload:
    """A request that was found good: what the task will do. Everything in it can be written as JSON."""

    model: str
    """The name that the caller used."""
    parts: Sequence[Mapping[str, Any]] = ({},)
    """One for each subtask; at least one."""
    common: Mapping[str, Any] = field(default_factory=dict)
    """Input that all parts share."""


@dataclass(frozen=True, slots=True)
class PartResult:
    result: Mapping[str, Any] = field(default_factory=dict)
    """Its item of `results`. A value `{"file": …}` becomes a link."""
    usage: Mapping[str, int | float | str] = field(default_factory=dict)
    """Numbers are added up over the parts; of a text, the last part's stays."""


class TaskKind(Protocol):
    path: str
    """`group/task/function`: it is created by `POST /api/v1/services/<path>`."""
    title: str
    """For the reference and the admin."""
    description: str
    body: type[Schema]
    time_limit_s: float
    """A part that takes longer fails with `ResponseTimeout`."""
    max_attempts: int
    """Attempts that may be lost with their workers before it fails with `InternalError.WorkerLost`."""
    parallel: int
    """Parts of one task that are worked on at once."""
    has_results: bool
    """True if the response lists the parts: `results`, also of a task that failed, and `task_metrics`."""

    async def accept(self, caller: Caller, body: Any) -> Payload:
        """Check a request and say what it will do.

        Raises:
            RequestRefused: if it can never be done: unknown model, bad parameter, nothing configured.
        """

    async def run(self, part: TaskContext) -> PartResult:
        """Do one part; cancelled when the lease was lost or time is up.

        Raises:
            VoiceError: its code and message are the part's.
        """

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The rest of `output` of a task that is over, beside times and status.

        `task` is the common part of its order, `results` one item for each part: what the part gave, or `code` and
        `message`. At least one succeeded, unless the kind `has_results`: that returns `{"results": results}`, and the
        metrics are added.
        """


@runtime_checkable
class WithdrawableKind(Protocol):
    """A kind whose work is handed to another service, where it waits for its turn once more."""

    async def withdraw(self, model: str, parts: Sequence[Mapping[str, Any]]) -> bool:
        """Ask the service to give up all parts of a task; whether it did. `parts` holds what each one remembers.

        Raises:
            EngineError: if the service cannot be asked.
        """


@cache
def kinds() -> Mapping[str, TaskKind]:
    """All kinds by path, in the order of the setting."""
    found = [import_string(dotted)() for dotted in settings.TASK_KINDS]
    return {kind.path: kind for kind in found}


def kind_at(path: str) -> TaskKind:
    """The kind of task that is created at a path.

    Raises:
        NotFound: if there is none.
    """
    kind = kinds().get(path)
    if kind is None:
        raise NotFound("Nothing is served at this address.")
    return kind
