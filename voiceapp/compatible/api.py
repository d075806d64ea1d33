"""The OpenAI-compatible operations."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import Path, Router

from voiceapp.accounts.auth import Caller
from voiceapp.compatible import models
from voiceapp.compatible.chat import Writer, wish
from voiceapp.compatible.schemas import Completion, CompletionBody, Model, Models
from voiceapp.generation.answers import answer
from voiceapp.generation.stream import EVENTS, StreamedResponse, begun
from voiceapp.schemas import CleanStr

router = Router(tags=["OpenAI-compatible"])

STREAMED = {"responses": {200: {"content": EVENTS}}}


@router.post("/chat/completions", summary="Answer a conversation", response=Completion, openapi_extra=STREAMED)
async def create_completion(request: HttpRequest, body: CompletionBody) -> HttpResponseBase:
    """The same as the native operation, for the `openai` libraries; with `stream`, as events ended by `[DONE]`."""
    caller = _caller(request)
    pieces = answer(caller, wish(body), request_id=request.request_id)
    writer = Writer(body, request)
    if body.stream:
        return StreamedResponse(writer.chunks(await begun(pieces)), "text/event-stream; charset=utf-8")
    return HttpResponse(await writer.completion(pieces), content_type="application/json")


@router.get("/models", summary="List the models", response=Models)
async def list_models(request: HttpRequest) -> Models:
    """Every name that this key may ask for, with the aliases that client programs have built in."""
    return Models(data=models.visible(_caller(request)))


@router.get("/models/{path:model}", summary="Look at a model", response=Model)
async def retrieve_model(request: HttpRequest, model: Path[CleanStr]) -> Model:
    """One of the names in the list."""
    return models.one(_caller(request), model)


def _caller(request: HttpRequest) -> Caller:
    """
    Raises:
        AccessDenied: if the key may not be used for inference.
    """
    caller: Caller = request.auth
    caller.require("inference")
    return caller
