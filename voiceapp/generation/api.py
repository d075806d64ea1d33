"""The native chat operations: text and multimodal, whole and streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import Router

from voiceapp.accounts.auth import Caller
from voiceapp.engines.interfaces import ChatUsage
from voiceapp.errors import AccessDenied, InvalidParameter
from voiceapp.generation.answers import Piece, answer
from voiceapp.generation.gathering import Gathered, fragment
from voiceapp.generation.messages import native_messages
from voiceapp.generation.schemas import GenerationBody, GenerationParameters, GenerationReply
from voiceapp.generation.stream import EVENTS, StreamedResponse, begun, compact, native_frames
from voiceapp.generation.wishes import Wish, wish_of

router = Router(tags=["Chat"])

EVENT_STREAM = "text/event-stream;charset=UTF-8"
UNFINISHED = "null"
"""What `finish_reason` is in a stream until the end: this text."""

STREAMED = {
    "parameters": [
        {
            "name": "X-DashScope-SSE",
            "in": "header",
            "description": "`enable` streams the answer as server-sent events; so does `Accept: text/event-stream`.",
            "schema": {"type": "string"},
        }
    ],
    "responses": {200: {"content": EVENTS}},
}


@router.post(
    "/text-generation/generation", summary="Answer a conversation", response=GenerationReply, openapi_extra=STREAMED
)
async def generate_text(request: HttpRequest, body: GenerationBody) -> HttpResponseBase:
    """The next message of a conversation, whole or streamed.

    While streaming, each frame repeats the whole text so far, or with `incremental_output` carries what is new. The
    embedded assistant answers questions about this program and its documents; it takes no images, calls no functions,
    and with `json_object` gives `{"answer": "…"}`.
    """
    return await _generate(request, body, is_multimodal=False)


@router.post(
    "/multimodal-generation/generation",
    summary="Answer a conversation in parts",
    response=GenerationReply,
    openapi_extra=STREAMED,
)
async def generate_multimodal(request: HttpRequest, body: GenerationBody) -> HttpResponseBase:
    """The same, with content in parts both ways: `[{"text": "…"}, {"image": "…"}]`.

    Images are taken where the engine behind the model has eyes.
    """
    return await _generate(request, body, is_multimodal=True)


async def _generate(request: HttpRequest, body: GenerationBody, *, is_multimodal: bool) -> HttpResponseBase:
    caller: Caller = request.auth
    caller.require("inference")
    if request.headers.get("X-DashScope-Async", "").lower() == "enable":
        raise AccessDenied("This model does not support asynchronous calls; leave X-DashScope-Async out.")
    parameters = body.parameters or GenerationParameters()
    shape = _Shape(parameters, is_multimodal=is_multimodal, request_id=request.request_id)
    pieces = answer(caller, _wish(body, parameters), request_id=request.request_id)
    if not _wants_stream(request):
        return await _whole(pieces, shape)
    bodies = _bodies(await begun(pieces), shape)
    return StreamedResponse(native_frames(request, bodies), EVENT_STREAM)


def _wants_stream(request: HttpRequest) -> bool:
    # The header alone must do: newer clients send it and accept anything.
    if request.headers.get("X-DashScope-SSE", "").lower() == "enable":
        return True
    return "text/event-stream" in request.headers.get("Accept", "")


def _wish(body: GenerationBody, parameters: GenerationParameters) -> Wish:
    """
    Raises:
        InvalidParameter: if values do not go together.
    """
    if (parameters.n or 1) > 1 and parameters.result_format == "text":
        raise InvalidParameter("parameters.n above 1 needs result_format message.", param="parameters.n")
    messages = native_messages(body.input)
    return wish_of(body.model, messages, parameters, messages_at="input.messages", parameters_at="parameters.")


class _Shape:
    """How answers of one call are written."""

    def __init__(self, parameters: GenerationParameters, *, is_multimodal: bool, request_id: str) -> None:
        self._is_multimodal = is_multimodal
        self._request_id = request_id
        self.is_incremental = bool(parameters.incremental_output)
        # Functions are called and parts are listed in messages only.
        needs_message = is_multimodal or bool(parameters.tools)
        self._has_text = parameters.result_format != "message" and not needs_message
        self._has_choices = parameters.result_format != "text" or needs_message
        self.answers = [Gathered(number) for number in range(parameters.n or 1)]

    def add(self, piece: Piece) -> None:
        self.answers[piece.index].add(piece)

    def whole(self, usage: ChatUsage) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        body = self._body([self._choice(answer) for answer in self.answers], usage)
        output = {"text": None, "finish_reason": None, **body["output"]}
        return {"status_code": 200, "code": "", "message": "", **body, "output": output}

    def so_far(self, piece: Piece) -> dict[str, Any]:
        """The body of a frame: everything up to this piece, or with incremental output the piece."""
        if not self.is_incremental:
            return self._body([self._choice(answer) for answer in self.answers], piece.usage)
        new = Gathered(piece.index)
        new.add(piece)
        if piece.tool_call is not None:
            new.tool_calls = [fragment(piece)]
        return self._body([self._choice(new)], piece.usage)

    def _body(self, choices: list[dict[str, Any]], usage: ChatUsage) -> dict[str, Any]:
        output: dict[str, Any] = {}
        if self._has_text:
            first = choices[0]
            output |= {"text": first["message"]["content"], "finish_reason": first["finish_reason"]}
        if self._has_choices:
            output["choices"] = choices
        return {"output": output, "usage": self._usage(usage), "request_id": self._request_id}

    def _choice(self, answer: Gathered) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if self._is_multimodal:
            message["content"] = [{"text": answer.text}] if answer.text else []
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.tool_calls:
            message["tool_calls"] = answer.tool_calls
        choice = {"finish_reason": answer.finish_reason or UNFINISHED, "index": answer.index, "message": message}
        return choice | ({"logprobs": {"content": answer.logprobs}} if answer.logprobs else {})

    def _usage(self, usage: ChatUsage) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
        if usage.cached_tokens:
            shown["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
        if usage.reasoning_tokens:
            shown["output_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return shown


async def _whole(pieces: AsyncGenerator[Piece, None], shape: _Shape) -> HttpResponse:
    async with aclosing(pieces):
        async for piece in pieces:
            shape.add(piece)
    return HttpResponse(compact(shape.whole(piece.usage)), content_type="application/json")


async def _bodies(pieces: AsyncGenerator[Piece, None], shape: _Shape) -> AsyncGenerator[dict[str, Any], None]:
    async with aclosing(pieces):
        async for piece in pieces:
            shape.add(piece)
            yield shape.so_far(piece)
