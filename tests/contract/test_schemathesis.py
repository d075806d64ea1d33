"""Requests that a machine thinks up from the OpenAPI document, kept and broken, and what each operation owes them."""

from __future__ import annotations

import pytest
import schemathesis
from django.core.asgi import get_asgi_application
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig

from tests.conftest import Member

CONFIGURATION = SchemathesisConfig.from_dict({"generation": {"database": "none"}})
schema = schemathesis.openapi.from_asgi("/openapi.json", get_asgi_application(), config=CONFIGURATION)


@pytest.mark.django_db(transaction=True)
@schema.parametrize()
@settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_it_keeps_its_word(case: schemathesis.Case, alice: Member) -> None:
    case.call_and_validate(headers={"Authorization": alice.authorization})
