"""What is read from JSON can be stored and sent on, by whichever way it comes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncClient

from tests.conftest import Member
from voiceapp.http.schemas import read_json
from voiceapp.tasks.models import Task

UNSAYABLE = ["1e999", "-1e999", "NaN", "-Infinity", "9" * 400]


@pytest.mark.parametrize("number", UNSAYABLE)
def test_a_number_that_cannot_be_said_back_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"out of range|no number"):
        read_json(f'[{{"a": {number}}}]')


@pytest.mark.parametrize("number", [0, -1, 2**64, 10**308, -(10**308), 1.7e308, 5e-324, 0.1])
def test_any_other_number_is_read_as_it_is(number: float) -> None:
    assert read_json(f"[{number!r}]") == [number]


async def test_no_task_is_made_of_a_number_without_end(alice: Member) -> None:
    body = '{"model": "text-embedding-v4", "input": {"url": "https://example.org/x"}, "parameters": {"x": 1e999}}'
    answer = await AsyncClient().generic(
        "POST",
        "/api/v1/services/embeddings/text-embedding/text-embedding",
        body,
        content_type="application/json",
        headers={"Authorization": alice.authorization, "X-DashScope-Async": "enable"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParameter")
    assert not await Task.objects.aexists()


@pytest.mark.parametrize("value", [*UNSAYABLE, r'"\u0000"', r'"\ud800"'])
async def test_the_settings_beside_an_offer_are_read_as_strictly(alice: Member, value: str) -> None:
    form: dict[str, Any] = {"sdp": "v=0", "session": f'{{"model": "assistant", "tools": [{{"a": {value}}}]}}'}
    answer = await AsyncClient().post("/v1/realtime/calls", form, headers={"Authorization": alice.authorization})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "session")
