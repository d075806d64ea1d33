"""The task that answers many conversations: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pydantic
from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import require_budget, require_model
from voiceapp.catalogue.lookup import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.generation.calls import native_call
from voiceapp.generation.chat import answer, check
from voiceapp.generation.messages import native_messages
from voiceapp.generation.native_response import NativeResponse
from voiceapp.generation.schemas import GenerationInput, GenerationParameters
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.storage.inputs import check_sources, fetched
from voiceapp.tasks.storage.json_lines import MAX_LINES_BYTES, read_json, results_of
from voiceapp.tasks.work.context import TaskContext


class Lines(Schema):
    url: Annotated[CleanStr, Field(max_length=2048)]
    """Address of a file of JSON lines: each a `messages` array, or a `prompt`, and optionally a `custom_id`."""


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

    async def accept(self, caller: Caller, body: ChatBatchBody) -> Payload:
        card = catalogue().get(body.model, "chat")
        require_model(caller, card.name, "chat")
        await require_budget(caller, card.name, "chat")
        await check_sources(caller, [body.input.url])
        how = body.parameters or GenerationParameters()
        check(native_call(body.model, (), how, messages_at="messages"))
        return Payload(body.model, [{"url": body.input.url}], {"parameters": how.model_dump(exclude_none=True)})

    async def run(self, part: TaskContext) -> PartResult:
        await require_budget(part.caller, part.model, "chat")
        source = await fetched(part, part.order["url"], max_bytes=MAX_LINES_BYTES)
        target = part.folder / "answers.jsonl"
        spent = {"input_tokens": 0, "output_tokens": 0}

        async def one(number: int, asked: dict[str, Any]) -> Mapping[str, Any]:
            return await self._answer(part, number, asked, spent)

        written = 0
        with target.open("w") as sink:
            async for found in results_of(part, source, read_json, one):
                written += sink.write(f"{json.dumps(found)}\n")
                part.require_room(written)
        return PartResult({"url": await part.keep(target, "application/jsonl")}, spent)

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return dict(results[0])

    async def _answer(
        self, part: TaskContext, number: int, asked: dict[str, Any], spent: dict[str, int]
    ) -> dict[str, Any]:
        try:
            given = GenerationInput.model_validate(asked)
        except pydantic.ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise InvalidParameter(f"{where or 'The line'}: {fault['msg']}.") from None
        how = GenerationParameters.model_validate(part.common["parameters"])
        call = native_call(part.model, native_messages(given), how, messages_at="messages")
        request_id = f"{part.charge_id}-{number}"
        writer = NativeResponse(how, is_multimodal=False, request_id=request_id)
        reply = await writer.reply(answer(part.caller, call, request_id=request_id))
        for unit in spent:
            spent[unit] += reply["usage"][unit]
        return {"output": reply["output"], "usage": reply["usage"]}
