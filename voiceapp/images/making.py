"""One picture or film: requested from another service, waited for, fetched, and checked before it is handed out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from voiceapp.engines.image_files import ImageFormat, probe
from voiceapp.engines.image_interfaces import ImageGenerator, ImageRequest, TaskService, UpstreamTask
from voiceapp.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable, InvalidParameter
from voiceapp.tasks.storage.inputs import fetched
from voiceapp.tasks.storage.uploads import SCHEME
from voiceapp.tasks.work.context import TaskContext

MAX_BYTES = {"picture": 50_000_000, "film": 1_000_000_000}
FIRST_LOOK_S = 1.0
LAST_LOOK_S = 5.0
"""The time between two looks at the service's task grows from the first to the last, as client libraries do it."""
GIVING_UP_S = 10.0
"""Share of a part's time that is kept for telling the service to stop."""
MOST_MISSES = 10
"""So many looks in a row may fail before the service counts as gone."""
WORDS = frozenset({"prompt", "negative_prompt", "text"})
"""Fields of a request that hold no address, whatever they begin with."""
FACTS = ("orig_prompt", "actual_prompt")
"""Fields beside its address that a service returns with a result."""

Family = Literal["picture", "film"]


@dataclass(frozen=True, slots=True)
class Generated:
    """A picture or film in the part's folder."""

    path: Path
    form: ImageFormat
    facts: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, int | float | str] = field(default_factory=dict)


async def paint(part: TaskContext, painter: ImageGenerator) -> Generated:
    """A picture by a server that answers when it is there.

    Raises:
        VoiceError: if it cannot be had.
    """
    wanted = part.common
    sources = [await _given(part, url, f"source-{number}") for number, url in enumerate(wanted["pictures"])]
    mask = await _given(part, wanted["mask"], "mask") if wanted["mask"] else None
    painted = await painter.paint(
        ImageRequest(
            prompt=wanted["prompt"],
            negative_prompt=wanted["negative_prompt"],
            size=str(wanted["parameters"].get("size", "")).replace("*", "x"),
            seed=part.order.get("seed"),
            sources=sources,
            mask=mask,
        )
    )
    part.progress(0.9)
    if painted.url:
        return await _fetched(part, painted.url, "picture", of_server=painter.base_url)
    path = part.folder / "made"
    await asyncio.to_thread(path.write_bytes, painted.content)
    return await _looked_at(path, "picture")


async def follow(part: TaskContext, service: TaskService, path: str, family: Family, *, limit_s: float) -> Generated:
    """A result of a service of the same interface, whose task is created once however often this is begun again. One
    that takes longer than `limit_s` is given up there as well.

    Raises:
        VoiceError: if it cannot be had.
    """
    task_id = str(part.remembered.get("task_id") or "")
    if not task_id:
        parameters = {**part.common["parameters"], **part.order}
        given = await _passed_on(part, service, part.common["input"])
        task_id = await service.create(path, {"input": given, "parameters": parameters})
        await part.remember({"task_id": task_id})
    try:
        async with asyncio.timeout(limit_s - GIVING_UP_S):
            ended = await _ended(part, service, task_id)
    except TimeoutError:
        await service.cancel(task_id)
        raise EngineTimeout(f"The service that runs this model was not done within {limit_s:.0f} seconds.") from None
    if ended.status != "SUCCEEDED":
        raise EngineRefused(
            f"The service that runs this model failed: {ended.message or f'its task is {ended.status}'}"
        )
    item = _item(ended.output)
    if "url" not in item:
        raise EngineRefused(
            f"The service that runs this model failed: {str(item.get('message') or 'it made nothing')[:300]}"
        )
    made = await _fetched(part, str(item["url"]), family, of_server=service.base_url)
    facts = {name: str(item[name]) for name in FACTS if isinstance(item.get(name), str)}
    usage = {name: value for name, value in ended.usage.items() if isinstance(value, int | float | str)}
    return Generated(made.path, made.form, facts, usage)


async def given_up(service: TaskService, parts: Sequence[Mapping[str, Any]]) -> bool:
    """Cancel the tasks of these parts at the service if none has begun; true if all were canceled.

    Raises:
        EngineError: if the service cannot be asked.
    """
    task_ids = [str(part.get("task_id") or "") for part in parts]
    if not all(task_ids):
        return False
    looks = [await service.look(task_id) for task_id in task_ids]
    if any(look.status != "PENDING" for look in looks):
        return False
    return all([await service.cancel(task_id) for task_id in task_ids])


async def _passed_on(part: TaskContext, service: TaskService, value: Any) -> Any:
    """Return the value with each upload sent on to the service, which cannot read ours.

    Raises:
        VoiceError: if one is gone, or is not taken there.
    """
    if isinstance(value, str) and value.startswith(SCHEME):
        return await service.send(await part.open(value))
    if isinstance(value, dict):
        return {name: item if name in WORDS else await _passed_on(part, service, item) for name, item in value.items()}
    return [await _passed_on(part, service, item) for item in value] if isinstance(value, list) else value


async def _ended(part: TaskContext, service: TaskService, task_id: str) -> UpstreamTask:
    wait_s, misses = FIRST_LOOK_S, 0
    while True:
        try:
            task = await service.look(task_id)
        except EngineError as error:
            misses += 1
            if not error.retryable or misses > MOST_MISSES:
                raise
        else:
            misses = 0
            if task.status not in ("PENDING", "RUNNING", "SUSPENDED"):
                return task
            part.progress(0.9 * (task.progress or 0.0))
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 1.5, LAST_LOOK_S)


def _item(output: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one result, in whichever of the shapes that there are.

    Raises:
        EngineUnavailable: if it is in none of them.
    """
    try:
        if output.get("video_url"):
            return {**output, "url": output["video_url"]}
        if output.get("results"):
            return {**output, **output["results"][0]}
        content = output["choices"][0]["message"]["content"]
        return {**output, "url": next(piece["image"] for piece in content if "image" in piece)}
    except (LookupError, TypeError, AttributeError, StopIteration) as error:
        raise EngineUnavailable(
            "The service that runs this model answered with something that is no result."
        ) from error


async def _given(part: TaskContext, url: str, name: str) -> Path:
    """An image that the caller named.

    Raises:
        InvalidParameter: if it is not an image.
        FetchFailed: if it cannot be fetched.
    """
    made = await _fetched(part, url, "picture")
    return await asyncio.to_thread(made.path.rename, part.folder / f"{name}.{made.form.ending}")


async def _fetched(part: TaskContext, url: str, family: Family, *, of_server: str = "") -> Generated:
    return await _looked_at(await fetched(part, url, max_bytes=MAX_BYTES[family], of_server=of_server), family)


async def _looked_at(path: Path, family: Family) -> Generated:
    form = await asyncio.to_thread(probe, path, family)
    named = path.with_name(f"{family}.{form.ending}")
    return Generated(await asyncio.to_thread(path.rename, named), form)


def check_answerable(count: int, family: Family) -> None:
    """Check that a model is configured for a kind of work.

    Raises:
        InvalidParameter: if none is.
    """
    if not count:
        raise InvalidParameter(f"This server makes no {family}s: its operator has not connected a model that does.")
