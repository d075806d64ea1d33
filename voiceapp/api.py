"""The one NinjaAPI: the routers of every door, who may call them, how bodies are read, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from ninja import NinjaAPI, Router
from ninja.operation import Operation
from ninja.parser import Parser

from voiceapp.accounts.api import router as accounts
from voiceapp.accounts.auth import Caller, caller_from_bearer
from voiceapp.compatible import api as compatible
from voiceapp.errors import InvalidParameter
from voiceapp.generation import api as generation
from voiceapp.http.openapi import complete
from voiceapp.http.schemas import is_clean, read_json
from voiceapp.realtime.api import router as realtime
from voiceapp.realtime.openai_api import router as openai_realtime
from voiceapp.retrieval import api as retrieval
from voiceapp.tasks import api as tasks
from voiceapp.tasks.kinds import kinds
from voiceapp.tasks.storage import upload_api as uploads
from voiceapp.tasks.storage.file_api import router as task_files
from voiceapp.webhooks import api as webhooks

MAX_DEPTH = 64
"""Deepest nesting of arrays and objects in a body; a function's JSON schema needs about ten levels."""

ANSWERED_AT_ONCE = frozenset({"embeddings/text-embedding/text-embedding"})
"""Kinds of task whose path another operation serves, which asks for a task when its caller does."""

_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


class BearerKey:
    """Every operation wants `Authorization: Bearer <API key>`; `request.auth` is then the Caller."""

    openapi_security_schema = {"type": "http", "scheme": "bearer"}  # noqa: RUF012

    async def __call__(self, request: HttpRequest) -> Caller:
        return await caller_from_bearer(request.headers.get("Authorization"))


class CleanJson(Parser):
    """Reads a body into values that can be stored, searched and sent on without further thought."""

    def parse_body(self, request: HttpRequest) -> Any:
        """The JSON of a body.

        Raises:
            InvalidParameter: if the body is not JSON in UTF-8, is nested deeper than MAX_DEPTH, or holds NUL
                characters, halves of surrogate pairs, or numbers that JSON does not know or that no double can be.
        """
        body: bytes = request.body
        try:
            value = read_json(body.decode("utf-8-sig"))
        except RecursionError:
            raise InvalidParameter(TOO_DEEP) from None
        except ValueError as error:
            raise InvalidParameter(f"The body is not JSON in UTF-8: {error}.") from None
        if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
            raise InvalidParameter(TOO_DEEP)
        if _SUSPICIOUS_ESCAPE.search(body) and not is_clean(value):
            raise InvalidParameter("The body holds a NUL character or half of a surrogate pair.")
        return value


TOO_DEEP = f"The body nests arrays and objects deeper than {MAX_DEPTH}."


class VoiceApi(NinjaAPI):
    def set_default_exception_handlers(self) -> None:
        """None: whatever is raised travels on to `voiceapp.http.middleware`, the one place that translates."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        house = operation.view_func.__module__.removeprefix("voiceapp.").removesuffix(".api").replace(".", "_")
        return f"{house}_{operation.view_func.__name__}"


api = VoiceApi(
    title="Voiceapp",
    version="1",
    description="Chat, embedding, reranking and speech over HTTP. Every operation wants an API key.",
    auth=BearerKey(),
    parser=CleanJson(),
    openapi_url=None,
    docs_url=None,
    urls_namespace="api",
)
api.add_router("/api/v1/webrtc", realtime)
api.add_router("/api/v1/services/aigc", generation.router)
api.add_router("/api/v1/services", retrieval.native)
api.add_router("/compatible-api/v1", retrieval.flat)
api.add_router("/compatible-mode/v1", compatible.router)
api.add_router("/compatible-mode/v1", retrieval.compatible)
api.add_router("/compatible-mode/v1", openai_realtime)
api.add_router("/api/v1", accounts)
api.add_router("/api/v1", tasks.router)
api.add_router("/api/v1", task_files)
api.add_router("/api/v1", uploads.router)
services = Router()
for kind in kinds().values():
    if kind.path not in ANSWERED_AT_ONCE:
        tasks.add_creation(kind, services)
api.add_router("/api/v1/services", services)
for root in webhooks.ROOTS:
    api.add_router(f"/api/v1/{root}", webhooks.router_at(root))


@cache
def openapi_document() -> dict[str, Any]:
    return complete(json.loads(json.dumps(api.get_openapi_schema(path_prefix=""))))


ORIGIN = "https://origin.invalid"
"""Stands in what is made once for the origin that a request is made to."""


def origin_of(request: HttpRequest) -> bytes:
    origin: str = request.build_absolute_uri("/").rstrip("/")
    return origin.encode()


@cache
def _openapi_json() -> bytes:
    return json.dumps({**openapi_document(), "servers": [{"url": ORIGIN}]}, separators=(",", ":")).encode()


@require_safe
async def openapi(request: HttpRequest) -> HttpResponse:
    document = (await asyncio.to_thread(_openapi_json)).replace(ORIGIN.encode(), origin_of(request))
    return HttpResponse(document, content_type="application/json", headers={"Cache-Control": "max-age=300"})


def _depth(value: Any) -> int:
    """Return how deep arrays and objects nest; breadth first, since the depth is what cannot be trusted."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (list, dict))]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth
