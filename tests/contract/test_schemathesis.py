"""Requests that a machine thinks up from the OpenAPI document, kept and broken, and what each operation owes them."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
import schemathesis
from django.core.asgi import get_asgi_application
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig

from tests.conftest import Member
from tests.thorough import IS_THOROUGH
from voiceapp.api import openapi_document
from voiceapp.http.error_responses import written_code
from voiceapp.http.operation_errors import ANYWHERE

MODELS = {
    "embeddings": "text-embedding-v4",
    "rerank": "qwen3-rerank",
    "generation": "qwen-plus",
    "chat": "qwen-plus",
    "responses": "qwen-plus",
    "transcriptions": "moonshine-tiny-en",
    "speech": "espeak-ng",
}
"""By a word of the address, a model that it serves: left to chance, a request would never come past the name."""

GENERATION = {
    "database": "none",
    "allow-extra-parameters": False,  # what is not known is ignored
    "with-security-parameters": False,  # the test itself brings the key
}

CHECKED = {
    "negative_data_rejection": {"expected-statuses": ["400", "401", "403", "404", "405", "413", "415", "422", "429"]},
}
"""With 413: a text that is too long by far is a body that is too large."""
SHORT, LONGEST = 200, 4096
"""Characters to speak."""
FEW_TOKENS = {"completions": "max_tokens", "responses": "max_output_tokens"}
"""By a word of the address, the field that keeps the language model from writing for seconds."""


@schemathesis.serializer("application/sdp")
def sdp(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """An offer is text as it stands."""
    return str(value).encode(errors="replace")


load_all_checks()
# What a document cannot say, operations refuse: an unknown name, two fields that exclude each other, too many tokens.
UNFIT = CHECKS.get_by_names(["positive_data_acceptance"])

schema = schemathesis.openapi.from_asgi(
    "/openapi.json",
    get_asgi_application(),
    config=SchemathesisConfig.from_dict({"generation": GENERATION, "checks": CHECKED}),
)


@schema.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """Every fourth request names a model that is there."""
    if isinstance(body, dict) and isinstance(name := body.get("model"), str) and zlib.crc32(name.encode()) % 4 == 0:
        known = next((model for word, model in MODELS.items() if word in context.operation.path), name)
        return body | {"model": known}
    return body


@pytest.mark.django_db(transaction=True)
@schema.parametrize()
@settings(
    max_examples=25 if IS_THOROUGH else 3,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_it_keeps_its_word(case: schemathesis.Case, alice: Member) -> None:
    if isinstance(case.body, dict) and case.body.get("voice") in ("alloy", "woman"):
        case.body["voice"] = "en-us"  # of the longest text, a quarter of an hour, the neural voice takes minutes
        text = case.body.get("input")
        if isinstance(text, str) and SHORT < len(text) <= LONGEST:
            case.body["input"] = text[:SHORT]
    if isinstance(case.body, dict) and "model" in case.body:
        for name in [name for word, name in FEW_TOKENS.items() if word in case.operation.path]:
            case.body.setdefault(name, 2)
        if "generation" in case.operation.path and isinstance(parameters := case.body.get("parameters", {}), dict):
            case.body["parameters"] = {"max_tokens": 2} | parameters
    response = case.call_and_validate(headers={"Authorization": alice.authorization}, excluded_checks=UNFIT)
    operation = openapi_document()["paths"][case.operation.path].get(case.method.lower())
    if operation and response.status_code >= 400 and response.content:
        failure = response.json()
        code = (failure.get("error") or failure)["code"]
        named = (*operation["x-error-codes"], *ANYWHERE, "InvalidParameter")
        assert code in [written_code(case.operation.path, each) for each in named]
