"""Error responses: from any exception to a status and the body that its caller's library understands.

Four families of clients read four shapes:

    /api/v1              {"code", "message", "request_id"}
    /compatible-mode/v1  {"error": {"message", "type", "code", "param"}, "request_id"}
    /compatible-api/v1   both at once: which one the flat rerank root uses is not known, and clients accept either
    /api/v1/agentsvc and /api/v1/agentstudio
                         {"type": "error", "error": {"code", "message"}, "request_id"}
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from ninja.errors import HttpError, ValidationError

from voiceapp import disk
from voiceapp.errors import InvalidApiKey, InvalidParameter, RequestRefused, VoiceError
from voiceapp.http.roots import AGENT_ROOTS, COMPATIBLE_ROOT, FLAT_ROOT, canonical

__all__ = ["AGENT_ROOTS", "COMPATIBLE_ROOT", "FLAT_ROOT", "ErrorResponse", "error_json", "error_response_of"]


_STATUS_CODES = {
    401: "InvalidApiKey",
    403: "AccessDenied",
    404: "NotFound",
    408: "RequestTimeOut",
    409: "Conflict",
    429: "Throttling",
    503: "ServiceUnavailable",
    504: "ResponseTimeout",
}
_STATUS_MESSAGES = {
    404: "Nothing is served at this address.",
    405: "This address does not serve that method.",
    413: "The body is too large.",
}
_COMPATIBLE_CODES = {
    "InvalidApiKey": "invalid_api_key",
    "ModelNotFound": "model_not_found",
    "Throttling.RateQuota": "rate_limit_exceeded",
    "Throttling.Concurrency": "rate_limit_exceeded",
    "Throttling.AllocationQuota": "insufficient_quota",
}
_AGENT_CODES = {"NotFound": "11800001", "InvalidParameter": "11800016"}
"""Numbers in that family, names in the others."""
_COMPATIBLE_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_EXPECTATIONS = {
    "missing": "is required",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "none_required": "must be null",
}
"""The commonest complaints of pydantic, in terms of JSON instead of Python; its own words serve for the rest."""
_LENGTHS = {
    "string_too_long": ("may have at most", "max_length"),
    "too_long": ("may have at most", "max_length"),
    "string_too_short": ("must have at least", "min_length"),
    "too_short": ("must have at least", "min_length"),
}
_PART_OF_A_PATH = re.compile(r"\w+")
_NAME_OF_A_CLASS = re.compile(r"[A-Z](?=\w*[a-z])\w*")
_KINDS_OF_VALUE = frozenset({"str", "int", "float", "bool", "none", "list", "dict", "tuple"})


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """The answer to a request that failed, before it takes a family's shape."""

    status: int
    code: str
    message: str
    param: str | None = None
    """Dotted path of the field to blame."""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_fault: bool = False
    """The error was not expected: the log has to say what happened."""


class MediaTypeRefused(RequestRefused):
    """The body comes in a form that this operation does not read."""

    http_status = 415


def error_response_of(error: Exception) -> ErrorResponse:
    """Return the response for an exception; an unknown one gets one sentence without internals."""
    if isinstance(error, HttpError) and isinstance(error.__cause__, VoiceError):
        error = error.__cause__  # ninja wraps what our parser of bodies raises
    if isinstance(error, VoiceError):
        return _of_ours(error)
    if isinstance(error, ValidationError):
        return _of_values(error)
    if isinstance(error, HttpError):
        return error_response_of_status(error.status_code, error.message)
    if isinstance(error, (OperationalError, InterfaceError)):
        return database_away()
    if disk.is_full(error):
        return _of_ours(disk.DiskFull())
    if isinstance(error, Http404):
        return error_response_of_status(404)
    if isinstance(error, PermissionDenied):
        return error_response_of_status(403, "That is not allowed.")
    if isinstance(error, RequestDataTooBig):
        return error_response_of_status(413)
    if isinstance(error, (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)):
        return error_response_of_status(400, "The request could not be read.")
    message = "The server failed on this request; its log says why under the request id."
    return ErrorResponse(500, "InternalError", message, is_fault=True)


def error_response_of_status(
    status: int, message: str | None = None, headers: Mapping[str, str] | None = None
) -> ErrorResponse:
    """The answer for a status of which nothing else is known."""
    if status == 405 and headers and "Allow" in headers:
        message = f"{message or _STATUS_MESSAGES[405]} It serves {headers['Allow']}."
    fallback = "InternalError" if status >= 500 else "InvalidParameter"
    phrase = http.client.responses.get(status, "Refused")
    return ErrorResponse(
        status,
        _STATUS_CODES.get(status, fallback),
        message or _STATUS_MESSAGES.get(status, f"{phrase}."),
        headers=headers or {},
    )


def database_away() -> ErrorResponse:
    """The answer while the database is locked, full, frozen or gone."""
    message = "The server's database does not respond just now. Try again shortly."
    return error_response_of_status(503, message, headers={"Retry-After": "1"})


def error_body(path: str, refusal: ErrorResponse, request_id: str) -> dict[str, Any]:
    """The JSON body in the shape of the family that `path` belongs to."""
    path = canonical(path)
    code = written_code(path, refusal.code)
    if path.startswith(AGENT_ROOTS):
        return {"type": "error", "error": {"code": code, "message": refusal.message}, "request_id": request_id}
    native = {"code": refusal.code, "message": refusal.message, "request_id": request_id}
    if not path.startswith((COMPATIBLE_ROOT, FLAT_ROOT)):
        return native
    compatible = {
        "error": {
            "message": refusal.message,
            "type": _compatible_type(refusal),
            "code": code,
            "param": refusal.param,
        },
        "request_id": request_id,
    }
    return compatible if path.startswith(COMPATIBLE_ROOT) else native | compatible


def written_code(path: str, code: str) -> str:
    """The code in the words of the family that the canonical `path` belongs to."""
    if path.startswith(AGENT_ROOTS):
        return _AGENT_CODES.get(code, code)
    return compatible_code(code) if path.startswith((COMPATIBLE_ROOT, FLAT_ROOT)) else code


def error_json(path: str, refusal: ErrorResponse, request_id: str) -> bytes:
    """`error_body` as it is sent; an empty `path` stands for one that is not known."""
    return json.dumps(error_body(path, refusal, request_id)).encode()


def _of_ours(error: VoiceError) -> ErrorResponse:
    status, headers = error.http_status, {}
    if isinstance(error, InvalidApiKey):
        headers["WWW-Authenticate"] = "Bearer"
    elif status in (429, 503):
        headers["Retry-After"] = str(error.retry_after_s)
    return ErrorResponse(status, error.code, error.message, error.param, headers, status == 500)


def _of_values(error: ValidationError) -> ErrorResponse:
    """Names the first field to blame and everything that it might have been."""
    complaints = [(_dotted(fault["loc"]), _expectation(fault)) for fault in error.errors]
    first = complaints[0][0]
    # Of several alternatives, the one that came furthest is the one that was meant.
    param = max((path for path, _ in complaints if path.startswith(first)), key=lambda path: path.count("."))
    said = " or ".join(dict.fromkeys(expectation for path, expectation in complaints if path == param))[:500]
    return _of_ours(InvalidParameter(f"{param or 'The body'} {said}.", param=param or None))


def _expectation(fault: Mapping[str, Any]) -> str:
    if fault["type"] in _LENGTHS:
        return _length(fault["type"], fault["ctx"])
    said = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    if said.startswith("should "):
        said = f"must {said.removeprefix('should ')}"
    elif fault["type"] == "value_error":
        said = f"is refused: {said}"
    return _EXPECTATIONS.get(fault["type"], said)


def _length(kind: str, context: Mapping[str, Any]) -> str:
    words, bound = _LENGTHS[kind]
    # A text that a function of ours checks as well is a "Value" to pydantic, and made of items.
    unit = "character" if context.get("field_type", "Value") == "Value" else "item"
    count = context[bound]
    return f"{words} {count:,} {unit}{'' if count == 1 else 's'}"


def _dotted(location: tuple[str | int, ...]) -> str:
    """`("body", "payload", "input", "texts", "list[str]", 3)` → `input.texts.3`.

    Pydantic names the alternatives it tried in its paths, and ninja begins it with the place and our argument's name.
    """
    source, *rest = location
    parts = [str(part) for part in (rest[1:] if source == "body" else rest)]
    parts = [part for part in parts if _PART_OF_A_PATH.fullmatch(part) and not _NAME_OF_A_CLASS.fullmatch(part)]
    return ".".join(parts[:-1] if parts and parts[-1] in _KINDS_OF_VALUE else parts)


def compatible_code(code: str) -> str:
    """`Throttling.RateQuota` → `rate_limit_exceeded`; without a name there: `AccessDenied` → `access_denied`."""
    return _COMPATIBLE_CODES.get(code) or re.sub(r"(?<=[a-z])(?=[A-Z])|\.", "_", code).lower()


def _compatible_type(refusal: ErrorResponse) -> str:
    if refusal.code == "Throttling.AllocationQuota":
        return "insufficient_quota"
    fallback = "server_error" if refusal.status >= 500 else "invalid_request_error"
    return _COMPATIBLE_TYPES.get(refusal.status, fallback)
