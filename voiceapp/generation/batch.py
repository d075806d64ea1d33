"""The task that answers many conversations: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pydantic
from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.metering import require_model
from voiceapp.engines.catalogue import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.generation.answers import answer, check
from voiceapp.generation.messages import native_messages
from voiceapp.generation.schemas import GenerationInput, GenerationParameters
from voiceapp.generation.wishes import native_wish
from voiceapp.generation.writing import Writer
from voiceapp.schemas import CleanStr, Schema
from voiceapp.tasks.inputs import MAX_LINES_BYTES, answered, check_sources, fetched, read_json
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
        "with `output` and `usage` as the operation for one conversation answers them, or `error`, and the `custom_id` "
        "it came with."
    )
    body = ChatBatchBody
    time_limit_s = 4 * 3600.0
    max_attempts = 3
    parallel = 1
    has_results = False

    async def accept(self, caller: Caller, body: ChatBatchBody) -> Order:
        card = catalogue().get(body.model, "chat")
        require_model(caller, card.name, "chat")
        await check_sources(caller, [body.input.url])
        how = body.parameters or GenerationParameters()
        check(native_wish(body.model, (), how, messages_at="messages"))
        return Order(body.model, [{"url": body.input.url}], {"parameters": how.model_dump(exclude_none=True)})

    async def run(self, part: Part) -> Done:
        source = await fetched(part, part.order["url"], max_bytes=MAX_LINES_BYTES)
        target = part.folder / "answers.jsonl"
        spent = {"input_tokens": 0, "output_tokens": 0}

        async def one(number: int, asked: dict[str, Any]) -> Mapping[str, Any]:
            return await self._answer(part, number, asked, spent)

        with target.open("w") as sink:
            async for found in answered(part, source, read_json, one):
                sink.write(f"{json.dumps(found)}\n")
        return Done({"url": await part.keep(target, "application/jsonl")}, spent)

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def _answer(self, part: Part, number: int, asked: dict[str, Any], spent: dict[str, int]) -> dict[str, Any]:
        try:
            given = GenerationInput.model_validate(asked)
        except pydantic.ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise InvalidParameter(f"{where or 'The line'}: {fault['msg']}.") from None
        how = GenerationParameters.model_validate(part.common["parameters"])
        wish = native_wish(part.model, native_messages(given), how, messages_at="messages")
        request_id = f"{part.charge_id}-{number}"
        writer = Writer(how, is_multimodal=False, request_id=request_id)
        reply = await writer.reply(answer(part.caller, wish, request_id=request_id))
        for unit in spent:
            spent[unit] += reply["usage"][unit]
        return {"output": reply["output"], "usage": reply["usage"]}
