"""The tasks that make pictures and films: one subtask for each picture, and a film alone.

No model for this runs inside the process. Without another service, a request is refused when it is made.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import charge, require_budget, require_model
from voiceapp.accounts.ledger import Quantities
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.image_interfaces import ImageGenerator, TaskService
from voiceapp.engines.models.providers import provider_of
from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.http.schemas import Schema
from voiceapp.images import schemas
from voiceapp.images.making import Family, Generated, check_answerable, follow, given_up, paint
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.storage.inputs import check_sources
from voiceapp.tasks.work.context import TaskContext
from voiceapp.tasks.work.retries import with_patience

USUAL_VIDEO_S = 10
"""Set aside for a video whose length the request leaves open, where a budget asks for it."""

MAX_VIDEO_S = 24 * 3600
"""Longest video that a service is believed to have made."""


class _Generation(ABC):
    """Common to pictures and films: a model on another server, one part and one file for each result."""

    path: str
    kind: Literal["image", "video"]
    """Kind of model that does the work; also its name in the ledger."""
    family: Family
    time_limit_s: float
    max_attempts = 3
    parallel = 2
    has_results: bool = False

    async def order(
        self,
        caller: Caller,
        model: str,
        given: Schema,
        parameters: Schema | None,
        *,
        prompt: str,
        pictures: Sequence[str] = (),
        negative_prompt: str | None = None,
        mask: str | None = None,
    ) -> Payload:
        """The payload of a request.

        Raises:
            InvalidParameter: if no such model is configured, or an image lies where nothing is fetched from.
            ModelNotFound: if only others are.
        """
        check_answerable(len(catalogue().of_kind(self.kind)), self.family)
        card = catalogue().get(model, self.kind)
        require_model(caller, card.name, self.kind)
        await check_sources(caller, (*pictures, *filter(None, (mask,))))
        how = parameters.model_dump(exclude_none=True) if parameters else {}
        count = int(how.pop("n", 1))
        await require_budget(caller, card.name, self.kind, **self.most(how, count))
        common = {
            "input": given.model_dump(exclude_none=True),
            "parameters": how,
            "prompt": prompt,
            "negative_prompt": negative_prompt or "",
            "pictures": list(pictures),
            "mask": mask or "",
        }
        return Payload(model, [self._part(how, number) for number in range(count)], common)

    async def run(self, part: TaskContext) -> PartResult:
        card = catalogue().get(part.model, self.kind)
        async with charge(
            part.caller,
            operation=self.kind,
            model=card.name,
            family=self.kind,
            request_id=part.charge_id,
            lifetime=timedelta(seconds=self.time_limit_s),
            **self.most(part.common["parameters"]),
        ) as meter:
            with part.waiting():
                made: Generated = await with_patience(lambda: self._make(part, provider_of(card)))
            kept = await part.keep(made.path, made.form.content_type)
            with suppress(AccessDenied):  # what is made is paid for, and the caller gets it
                meter.used(**self.used(made))
        return PartResult({**made.facts, "url": kept}, {**made.usage, f"{self.kind}_count": 1})

    async def withdraw(self, model: str, parts: Sequence[Mapping[str, Any]]) -> bool:
        card = catalogue().find(model, self.kind)
        maker: Any = None if card is None else provider_of(card)
        return isinstance(maker, TaskService) and await given_up(maker, parts)

    @abstractmethod
    def most(self, how: Mapping[str, Any], count: int = 1) -> Quantities:
        """Return the most that so many results are charged, by the request's parameters."""

    def used(self, made: Generated) -> Quantities:
        """Return what one result is charged."""
        return self.most({})

    async def _make(self, part: TaskContext, maker: Any) -> Generated:
        if isinstance(maker, ImageGenerator):
            return await paint(part, maker)
        return await follow(part, maker, self.path, self.family, limit_s=self.time_limit_s)

    def _part(self, how: Mapping[str, Any], number: int) -> dict[str, Any]:
        return {"seed": how["seed"] + number} if "seed" in how else {}


class _ImageGeneration(_Generation):
    kind = "image"
    family = "picture"
    time_limit_s = 900.0
    has_results = True

    def most(self, how: Mapping[str, Any], count: int = 1) -> Quantities:
        return {"image_count": count}

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"results": list(results)}

    def _part(self, how: Mapping[str, Any], number: int) -> dict[str, Any]:
        return {**super()._part(how, number), "n": 1}


class TextToImage(_ImageGeneration):
    """A `Kind`."""

    path = "aigc/text2image/image-synthesis"
    title = "Draw pictures"
    description = (
        "One subtask for each of `n` pictures. Needs a model on another server: an OpenAI-compatible server "
        "(`IMAGES_BASE_URL`) or a service of the same interface (`UPSTREAM_IMAGE_MODELS`)."
    )
    body = schemas.ImageBody

    async def accept(self, caller: Caller, body: schemas.ImageBody) -> Payload:
        given = body.input
        return await self.order(
            caller,
            body.model,
            given,
            body.parameters,
            prompt=given.prompt,
            negative_prompt=given.negative_prompt,
            pictures=given.pictures,
            mask=given.mask_image_url,
        )


class ImageToImage(TextToImage):
    """A `Kind`."""

    path = "aigc/image2image/image-synthesis"
    title = "Change pictures"
    description = "As drawing, with one or more pictures to begin with; one subtask for each of `n` results."

    async def accept(self, caller: Caller, body: schemas.ImageBody) -> Payload:
        if not body.input.pictures:
            raise InvalidParameter("Name at least one picture in images or base_image_url.", param="input.images")
        return await super().accept(caller, body)


class MessageToImage(_ImageGeneration):
    """A `Kind`."""

    path = "aigc/image-generation/generation"
    title = "Draw pictures from a message"
    description = "As drawing, asked for in a chat message, and answered in the form of chat as well (`choices`)."
    body = schemas.MessageBody

    async def accept(self, caller: Caller, body: schemas.MessageBody) -> Payload:
        pieces = body.input.messages[0].content
        prompt = "\n".join(piece.text for piece in pieces if piece.text)
        if not prompt:
            raise InvalidParameter("The message says nothing to see.", param="input.messages.0.content")
        pictures = [piece.image for piece in pieces if piece.image]
        return await self.order(caller, body.model, body.input, body.parameters, prompt=prompt, pictures=pictures)

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        contents = [[{"type": "image", "image": result["url"]}] for result in results if "url" in result]
        choices = [
            {"finish_reason": "stop", "message": {"role": "assistant", "content": content}} for content in contents
        ]
        return {"results": list(results), "choices": choices}


class TextToVideo(_Generation):
    """A `Kind`."""

    path = "aigc/video-generation/video-synthesis"
    title = "Make a film"
    description = (
        "Needs another service with the same interface (`UPSTREAM_VIDEO_MODELS`). `output.video_url` is the film."
    )
    body = schemas.VideoBody
    kind = "video"
    family = "film"
    time_limit_s = 7200.0

    def most(self, how: Mapping[str, Any], count: int = 1) -> Quantities:
        return {"video_count": count, "video_seconds": count * int(how.get("duration", USUAL_VIDEO_S))}

    def used(self, made: Generated) -> Quantities:
        said = made.usage.get("video_duration", made.usage.get("duration"))
        seconds = math.ceil(said) if isinstance(said, int | float) and 0 < said <= MAX_VIDEO_S else 0
        return {"video_count": 1, "video_seconds": seconds}

    async def accept(self, caller: Caller, body: schemas.VideoBody) -> Payload:
        given = body.input
        if not given.prompt and not given.sources:
            raise InvalidParameter(
                "Say what to see, in prompt, or name a picture to begin with, in img_url or first_frame_url.",
                param="input",
            )
        return await self.order(
            caller,
            body.model,
            given,
            body.parameters,
            prompt=given.prompt or "",
            pictures=given.sources,
        )

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        made = dict(results[0])
        return {"orig_prompt": task["prompt"], "video_url": made.pop("url"), **made}


class ImageToVideo(TextToVideo):
    """A `Kind`."""

    path = "aigc/image2video/video-synthesis"
    title = "Make a film from pictures"
