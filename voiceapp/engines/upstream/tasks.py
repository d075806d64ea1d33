"""Tasks of a service elsewhere that has the same interface: created there with our key, and looked at until done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from voiceapp.engines.openai.client import Server
from voiceapp.engines.openai.forms import Form
from voiceapp.engines.picture_interfaces import TaskElsewhere
from voiceapp.errors import EngineUnavailable

MAX_ANSWER_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 60.0
"""For each answer; the work itself takes as long as it takes."""
BOOKKEEPING = frozenset(
    {"task_id", "task_status", "submit_time", "scheduled_time", "end_time", "task_metrics", "progress"}
)
"""Fields of an output that say how the task fared, not what it came to."""

POLICY_FIELDS = {
    "OSSAccessKeyId": "oss_access_key_id",
    "Signature": "signature",
    "policy": "policy",
    "x-oss-object-acl": "x_oss_object_acl",
    "x-oss-forbid-overwrite": "x_oss_forbid_overwrite",
}
"""Fields of the form by which a file is sent, and what a policy calls them."""
FIXED_FIELDS = {"success_action_status": "200"}


class RelayedTasks:
    """A `TaskService`; one per process and model."""

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        """`base_url` is what comes before `/api/v1`; `model` is the name that the service knows."""
        self.base_url = base_url
        self._server = Server(
            title="service elsewhere", settings="UPSTREAM", base_url=base_url, api_key=api_key, timeout_s=TIMEOUT_S
        )
        self._model = model

    async def create(self, path: str, body: Mapping[str, Any]) -> str:
        """
        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """
        answer = await self._server.ask(
            f"/api/v1/services/{path}",
            {**body, "model": self._model},
            limit=MAX_ANSWER_BYTES,
            headers={"X-DashScope-Async": "enable", "X-DashScope-OssResourceResolve": "enable"},
        )
        task_id = _output(answer).get("task_id")
        if not isinstance(task_id, str) or not 0 < len(task_id) <= 200:
            raise EngineUnavailable("The service elsewhere answered without the id of a task.")
        return task_id

    async def look(self, task_id: str) -> TaskElsewhere:
        """
        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """
        answer = await self._server.ask(f"/api/v1/tasks/{quote(task_id, safe='')}", None, limit=MAX_ANSWER_BYTES)
        output = _output(answer)
        progress, usage = output.get("progress"), answer.get("usage")
        return TaskElsewhere(
            status=str(output.get("task_status", "")),
            progress=float(progress) if isinstance(progress, int | float) else None,
            code=str(output.get("code") or ""),
            message=self._server.message(output) if output.get("message") else "",
            output={name: value for name, value in output.items() if name not in BOOKKEEPING},
            usage=usage if isinstance(usage, dict) else {},
        )

    async def send(self, file: Path) -> str:
        """The address at the service of a file that was sent to it, by a policy, as its own client libraries do.

        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """
        where = f"/api/v1/uploads?{urlencode({'action': 'getPolicy', 'model': self._model})}"
        answer = await self._server.ask(where, None, limit=MAX_ANSWER_BYTES)
        try:
            policy = answer["data"]
            key = f"{policy['upload_dir']}/{file.name}"
            form = Form({field: policy[name] for field, name in POLICY_FIELDS.items()} | {"key": key} | FIXED_FIELDS)
            host = str(policy["upload_host"])
        except (LookupError, TypeError) as error:
            raise EngineUnavailable("The service elsewhere does not say where to send files.") from error
        await asyncio.to_thread(form.add_file, "file", file)
        await self._put(host, form)
        return f"oss://{key}"

    async def _put(self, host: str, form: Form) -> None:
        """Send a form to where files go, which may be another server: our key stays here.

        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """
        server = Server(title="store of files", settings="UPSTREAM", base_url=host, api_key="", timeout_s=TIMEOUT_S)
        try:
            (await server.post("", form.body(), content_type=form.content_type)).close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise server.failure(error) from error
        finally:
            await server.close()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()


def _output(answer: Any) -> dict[str, Any]:
    """Raises EngineUnavailable: the answer is none about a task."""
    output = answer.get("output") if isinstance(answer, dict) else None
    if not isinstance(output, dict):
        raise EngineUnavailable("The service elsewhere answered with something that is no task.")
    return output
