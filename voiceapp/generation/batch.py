"""The task that answers many conversations: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any

import pydantic
from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import require_model
from voiceapp.engines.catalogue import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.generation.answers import answer
from voiceapp.generation.messages import native_messages
from voiceapp.generation.schemas import GenerationInput, GenerationParameters
from voiceapp.generation.wishes import wish_of
from voiceapp.schemas import CleanStr, Schema
from voiceapp.tasks.inputs import MAX_LINES_BYTES, answered, check_source, fetched, read_json
from voiceapp.tasks.kinds import Done, Order, Part


class Lines(Schema):
    url: Annotated[CleanStr, Field(max_length=2048)]
    """Of a file of JSON lines: each a `messages` array, or a `prompt`, and optionally a `custom_id` to know it by."""


class ChatBatchBody(Schema):
    model: CleanStr
    input: Lines
    parameters: GenerationParameters | None = None
    """For every line."""


class ChatBatch:
    """A `Kind`."""

    path = "aigc/text-generation/batch"
    title = "Answer many conversations"
    description = (
        "Fetches a file of JSON lines and answers each: the result, at `output.url`, has a line for each, in order, "
        "with `message` or `error`, and the `custom_id` it came with."
    )
    body = ChatBatchBody
    time_limit_s = 4 * 3600.0
    max_attempts = 3
    parallel = 1

    async def accept(self, caller: Caller, body: ChatBatchBody) -> Order:
        card = catalogue().get(body.model, "chat")
        require_model(caller, card.name, "chat")
        check_source(body.input.url)
        parameters = body.parameters.model_dump(exclude_none=True) if body.parameters else {}
        return Order(body.model, [{"url": body.input.url}], {"parameters": parameters})

    async def run(self, part: Part) -> Done:
        source = await fetched(part, part.order["url"], max_bytes=MAX_LINES_BYTES)
        target = part.folder / "answers.jsonl"
        spent = {"input_tokens": 0, "output_tokens": 0}

        async def one(number: int, line: bytes) -> Mapping[str, Any]:
            return await self._answer(part, number, line, spent)

        with target.open("w") as sink:
            async for found in answered(part, source, one):
                sink.write(f"{json.dumps(found)}\n")
        return Done({"url": await part.keep(target, "application/jsonl")}, spent)

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def _answer(self, part: Part, number: int, line: bytes, spent: dict[str, int]) -> dict[str, Any]:
        asked = read_json(line)
        try:
            given = GenerationInput.model_validate(asked)
        except pydantic.ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise InvalidParameter(f"{where or 'The line'}: {fault['msg']}.") from None
        wish = wish_of(
            part.model,
            native_messages(given),
            GenerationParameters.model_validate(part.common["parameters"]),
            messages_at="messages",
            parameters_at="parameters.",
        )
        text: list[str] = []
        usage = None
        async with aclosing(answer(part.caller, wish, request_id=f"{part.charge_id}-{number}")) as pieces:
            async for piece in pieces:
                text.append(piece.text)
                usage = piece.usage
        found: dict[str, Any] = {"message": {"role": "assistant", "content": "".join(text)}}
        if usage is not None:
            found["usage"] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            for unit, quantity in found["usage"].items():
                spent[unit] += quantity
        if isinstance(asked.get("custom_id"), str):
            found["custom_id"] = asked["custom_id"]
        return found
