"""The tasks that make pictures and films: one subtask for each picture, and a film alone.

No model for this runs inside the process. Without one elsewhere, a request is refused when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from voiceapp.accounts import ledger
from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import charge, require_model
from voiceapp.engines.catalogue import catalogue
from voiceapp.engines.picture_interfaces import Painter
from voiceapp.errors import InvalidParameter
from voiceapp.pictures import schemas
from voiceapp.pictures.making import Family, Made, check_answerable, follow, paint
from voiceapp.schemas import Schema
from voiceapp.tasks.inputs import check_sources, with_patience
from voiceapp.tasks.kinds import Done, Order, Part


class _Making:
    """What pictures and films have in common: a model elsewhere, a part for each result, a file for each part."""

    path: str
    kind: Literal["image", "video"]
    """Of the models that do it; also how the ledger names it."""
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
    ) -> Order:
        """
        Raises:
            InvalidParameter: if no such model is configured, or a picture lies where nothing is fetched from.
            ModelNotFound: if only others are.
        """
        check_answerable(len(catalogue().names(self.kind)), self.family)
        card = catalogue().get(model, self.kind)
        require_model(caller, card.name, self.kind)
        await check_sources(caller, (*pictures, *filter(None, (mask,))))
        how = parameters.model_dump(exclude_none=True) if parameters else {}
        count = int(how.pop("n", 1))
        common = {
            "input": given.model_dump(exclude_none=True),
            "parameters": how,
            "prompt": prompt,
            "negative_prompt": negative_prompt or "",
            "pictures": list(pictures),
            "mask": mask or "",
        }
        return Order(model, [self._part(how, number) for number in range(count)], common)

    async def run(self, part: Part) -> Done:
        card = catalogue().get(part.model, self.kind)
        async with charge(
            part.caller,
            operation=self.kind,
            model=card.name,
            family=self.kind,
            reserve_tokens=0,
            request_id=part.charge_id,
        ):
            with part.aside():
                made: Made = await with_patience(lambda: self._make(part, catalogue().provider(card)))
            kept = await part.keep(made.path, made.form.content_type)
            count = {f"{self.kind}_count": 1}
            await ledger.write(
                part.caller,
                operation=self.kind,
                model=card.name,
                family=self.kind,
                request_id=part.charge_id,
                quantities=count,
            )
        return Done({**made.facts, "url": kept}, {**made.usage, **count})

    async def _make(self, part: Part, maker: Any) -> Made:
        if isinstance(maker, Painter):
            return await paint(part, maker)
        return await follow(part, maker, self.path, self.family)

    def _part(self, how: Mapping[str, Any], number: int) -> dict[str, Any]:
        return {"seed": how["seed"] + number} if "seed" in how else {}


class _Drawing(_Making):
    kind = "image"
    family = "picture"
    time_limit_s = 900.0
    has_results = True

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"results": list(results)}

    def _part(self, how: Mapping[str, Any], number: int) -> dict[str, Any]:
        return {**super()._part(how, number), "n": 1}


class Drawing(_Drawing):
    """A `Kind`."""

    path = "aigc/text2image/image-synthesis"
    title = "Draw pictures"
    description = (
        "One subtask for each of `n` pictures. Needs a model elsewhere: an OpenAI-compatible server "
        "(`IMAGES_BASE_URL`) or a service of the same interface (`UPSTREAM_IMAGE_MODELS`)."
    )
    body = schemas.PictureBody

    async def accept(self, caller: Caller, body: schemas.PictureBody) -> Order:
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


class Redrawing(Drawing):
    """A `Kind`."""

    path = "aigc/image2image/image-synthesis"
    title = "Change pictures"
    description = "As drawing, with one or more pictures to begin with; one subtask for each of `n` results."

    async def accept(self, caller: Caller, body: schemas.PictureBody) -> Order:
        if not body.input.pictures:
            raise InvalidParameter("Name at least one picture in images or base_image_url.", param="input.images")
        return await super().accept(caller, body)


class DrawingByMessage(_Drawing):
    """A `Kind`."""

    path = "aigc/image-generation/generation"
    title = "Draw pictures from a message"
    description = "As drawing, asked for in a chat message, and answered in the form of chat as well (`choices`)."
    body = schemas.MessageBody

    async def accept(self, caller: Caller, body: schemas.MessageBody) -> Order:
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


class Filming(_Making):
    """A `Kind`."""

    path = "aigc/video-generation/video-synthesis"
    title = "Make a film"
    description = (
        "Needs a service elsewhere of the same interface (`UPSTREAM_VIDEO_MODELS`). `output.video_url` is the film."
    )
    body = schemas.FilmBody
    kind = "video"
    family = "film"
    time_limit_s = 7200.0

    async def accept(self, caller: Caller, body: schemas.FilmBody) -> Order:
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


class FilmingFromPicture(Filming):
    """A `Kind`."""

    path = "aigc/image2video/video-synthesis"
    title = "Make a film from pictures"
