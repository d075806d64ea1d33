"""The native chat operations: text and multimodal, whole and streamed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import Router

from voiceapp.accounts.auth import Caller
from voiceapp.errors import AccessDenied
from voiceapp.generation.calls import native_call
from voiceapp.generation.chat import answer
from voiceapp.generation.messages import native_messages
from voiceapp.generation.native_response import NativeResponse
from voiceapp.generation.schemas import GenerationBody, GenerationParameters, GenerationReply
from voiceapp.generation.stream import EVENTS, StreamedResponse, begun, compact, native_frames
from voiceapp.http.served_by import noting
from voiceapp.tasks.api import wants_task

router = Router(tags=["Chat"])

EVENT_STREAM = "text/event-stream;charset=UTF-8"
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

    Images are accepted by models with image input.
    """
    return await _generate(request, body, is_multimodal=True)


async def _generate(request: HttpRequest, body: GenerationBody, *, is_multimodal: bool) -> HttpResponseBase:
    caller: Caller = request.auth
    caller.require("inference")
    if wants_task(request):
        raise AccessDenied("This model does not support asynchronous calls; leave X-DashScope-Async out.")
    parameters = body.parameters or GenerationParameters()
    call = native_call(body.model, native_messages(body.input), parameters, messages_at="input.messages")
    pieces = answer(caller, call, request_id=request.request_id, note=noting(request))
    writer = NativeResponse(parameters, is_multimodal=is_multimodal, request_id=request.request_id)
    if _wants_stream(request):
        return StreamedResponse(native_frames(request, writer.frames(await begun(pieces))), EVENT_STREAM)
    return HttpResponse(compact(await writer.reply(pieces)), content_type="application/json")


def _wants_stream(request: HttpRequest) -> bool:
    # The header alone must do: newer clients send it and accept anything.
    if request.headers.get("X-DashScope-SSE", "").lower() == "enable":
        return True
    return "text/event-stream" in request.headers.get("Accept", "")
