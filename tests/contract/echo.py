"""A small API in the project's own house: operations that accept, refuse and fail on demand, one in each family."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from ninja import Router
from pydantic import Field

from voiceapp.api import BearerKey, CleanJson, VoiceApi
from voiceapp.errors import AccessDenied, EngineUnavailable, InvalidParameter, ModelNotFound, Throttled
from voiceapp.http.schemas import CleanStr, Schema


class Piece(Schema):
    text: str


class Inner(Schema):
    texts: str | list[str]
    count: int = 1


class Asked(Schema):
    model: str = Field(min_length=1)
    input: Inner
    pieces: list[str | Piece] | None = None
    ratio: float = 0.5
    mode: Literal["fast", "slow"] = "fast"
    tools: list[dict[str, Any]] | None = None


async def echo(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    return {"asked": asked.model_dump(), "request_id": request.request_id}


async def pick(request: HttpRequest, name: CleanStr, page: int = 1) -> dict[str, Any]:
    return {"name": name, "page": page, "request_id": request.request_id}


async def fail(request: HttpRequest, how: str) -> HttpResponse:
    if how == "html":
        return HttpResponse("<h1>No.</h1>", status=418)
    if how == "other":
        return JsonResponse({"detail": "no"}, status=400)
    raise {
        "denied": AccessDenied("This key may not do this."),
        "model": ModelNotFound("There is no model nova."),
        "value": InvalidParameter("top_n must be at least 1.", param="parameters.top_n"),
        "rate": Throttled(retry_after_s=7),
        "lane": _full_lane(),
        "down": EngineUnavailable("The model cannot serve now."),
        "bug": ZeroDivisionError("a secret internal"),
    }[how]


def _full_lane() -> EngineUnavailable:
    error = EngineUnavailable("Too much is waiting.")
    error.code = "Throttling.Concurrency"
    return error


async def plain(request: HttpRequest) -> HttpResponse:
    raise AccessDenied("A view without ninja is translated as well.")


api = VoiceApi(auth=BearerKey(), parser=CleanJson(), openapi_url=None, docs_url=None, urls_namespace="echo")
for root in ("/api/v1", "/compatible-mode/v1", "/compatible-api/v1"):
    router = Router()
    router.post("/echo")(echo)
    router.get("/pick/{name}")(pick)
    router.get("/fail/{how}", auth=None)(fail)
    api.add_router(root, router, url_name_prefix=root.split("/")[1])

urlpatterns = [path("api/v1/plain", plain), path("", api.urls)]
