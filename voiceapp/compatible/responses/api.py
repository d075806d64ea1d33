"""The operations at `/responses`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import Path, Router

from voiceapp.accounts.auth import Caller
from voiceapp.compatible.responses.calls import call_of
from voiceapp.compatible.responses.schemas import ModelResponse, ResponseBody
from voiceapp.compatible.responses.writing import ResponseWriter
from voiceapp.errors import NotFound
from voiceapp.generation.chat import answer
from voiceapp.generation.stream import EVENTS, StreamedResponse, begun
from voiceapp.http.schemas import CleanStr
from voiceapp.http.served_by import noting

router = Router()

STREAMED = {"responses": {200: {"content": EVENTS}}}


@router.post("/responses", summary="Create a response", response=ModelResponse, openapi_extra=STREAMED)
async def create_response(request: HttpRequest, body: ResponseBody) -> HttpResponseBase:
    """A chat answer in the shape of OpenAI's Responses API; with `stream`, as typed events.

    Function tools and structured output are the same as those of chat. Responses are not stored: each request brings
    the whole conversation.
    """
    pieces = answer(caller_of(request), call_of(body), request_id=request.request_id, note=noting(request))
    writer = ResponseWriter(body, request)
    if body.stream:
        return StreamedResponse(writer.events(await begun(pieces)), "text/event-stream; charset=utf-8")
    return HttpResponse(await writer.whole(pieces), content_type="application/json")


@router.get("/responses/{response_id}", summary="Look for a stored response", response=ModelResponse)
async def retrieve_response(request: HttpRequest, response_id: Path[CleanStr]) -> ModelResponse:
    """Responses are not stored, so there is none to be found: this is always refused with 404."""
    caller_of(request)
    raise NotFound("Responses are not stored here, so there is none to retrieve.")


def caller_of(request: HttpRequest) -> Caller:
    """Return the authenticated caller, whose key must have the scope `inference`.

    Raises:
        AccessDenied: if the key may not be used for inference.
    """
    caller: Caller = request.auth
    caller.require("inference")
    return caller
