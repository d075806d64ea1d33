"""Tasks of another service that has the same interface: created there with our key, and looked at until done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from voiceapp.engines.image_interfaces import UpstreamTask
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.openai.client import RemoteServer
from voiceapp.engines.openai.forms import MultipartForm
from voiceapp.engines.upstream.http.client import Address, services
from voiceapp.errors import EngineRefused, EngineUnavailable

MAX_RESPONSE_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 60.0
"""Timeout of each response of the store of files."""
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


class RelayedTasks(Provider):
    """A `TaskService`; one per process and model."""

    def __init__(self, *, model: str, **address: Any) -> None:
        """`model` is the name that the service knows; the rest is an `Address`."""
        where = Address(**address)
        self.base_url = where.base_url
        self._server = services().at(where)
        self._model = model

    async def create(self, path: str, body: Mapping[str, Any]) -> str:
        found = await self._server.ask(
            f"/api/v1/services/{path}",
            {**body, "model": self._model},
            limit=MAX_RESPONSE_BYTES,
            headers={
                f"X-{self._server.vendor}-Async": "enable",
                f"X-{self._server.vendor}-OssResourceResolve": "enable",
            },
        )
        task_id = _output(found).get("task_id")
        if not isinstance(task_id, str) or not 0 < len(task_id) <= 200:
            raise EngineUnavailable("The service that runs this model sent no task id.")
        return task_id

    async def look(self, task_id: str) -> UpstreamTask:
        found = await self._server.ask(f"/api/v1/tasks/{quote(task_id, safe='')}", None, limit=MAX_RESPONSE_BYTES)
        output = _output(found)
        progress, usage = output.get("progress"), found.get("usage")
        return UpstreamTask(
            status=str(output.get("task_status", "")),
            progress=float(progress) if isinstance(progress, int | float) else None,
            code=str(output.get("code") or ""),
            message=self._server.message(output) if output.get("message") else "",
            output={name: value for name, value in output.items() if name not in BOOKKEEPING},
            usage=usage if isinstance(usage, dict) else {},
        )

    async def cancel(self, task_id: str) -> bool:
        try:
            await self._server.ask(f"/api/v1/tasks/{quote(task_id, safe='')}/cancel", b"", limit=MAX_RESPONSE_BYTES)
        except EngineRefused:
            return False
        return True

    async def send(self, file: Path) -> str:
        """The address at the service of a file that was sent to it, by a policy, as its own client libraries do."""
        where = f"/api/v1/uploads?{urlencode({'action': 'getPolicy', 'model': self._model})}"
        found = await self._server.ask(where, None, limit=MAX_RESPONSE_BYTES)
        try:
            policy = found["data"]
            key = f"{policy['upload_dir']}/{file.name}"
            form = MultipartForm(
                {field: policy[name] for field, name in POLICY_FIELDS.items()} | {"key": key} | FIXED_FIELDS
            )
            host = str(policy["upload_host"])
        except (LookupError, TypeError) as error:
            raise EngineUnavailable("The service that runs this model does not say where to send files.") from error
        await asyncio.to_thread(form.add_file, "file", file)
        await self._put(host, form)
        return f"oss://{key}"

    async def _put(self, host: str, form: MultipartForm) -> None:
        """Send a form to where files go, which may be another server: our key stays here.

        Raises:
            EngineUnavailable: if the server cannot serve now.
            EngineTimeout: if the server takes too long.
            EngineRefused: if the server does not accept the request.
        """
        server = RemoteServer(
            title="store of files", settings="UPSTREAM", base_url=host, api_key="", timeout_s=TIMEOUT_S
        )
        try:
            (await server.post("", form.body(), content_type=form.content_type)).close()
        except (TimeoutError, aiohttp.ClientError) as error:
            raise server.failure(error) from error
        finally:
            await server.close()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()


def _output(found: Any) -> dict[str, Any]:
    """The `output` of a response about a task.

    Raises:
        EngineUnavailable: if the response is about something else.
    """
    output = found.get("output") if isinstance(found, dict) else None
    if not isinstance(output, dict):
        raise EngineUnavailable("The service that runs this model sent something that is not a task.")
    return output
