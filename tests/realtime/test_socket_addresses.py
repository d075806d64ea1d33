"""What a request is told that comes to the address of a WebSocket."""

from __future__ import annotations

import pytest
from django.test import AsyncClient


@pytest.mark.parametrize("address", ["/api-ws/v1/realtime", "/api-ws/v1/realtime/?model=voice", "/api-ws/v1/inference"])
async def test_a_request_without_an_upgrade_is_told_so_in_json(address: str) -> None:
    for method in ("GET", "POST"):
        answer = await AsyncClient().generic(method, address)
        assert (answer.status_code, answer["Upgrade"]) == (426, "websocket")
        assert "WebSocket" in answer.json()["message"]
        assert answer.json()["request_id"] == answer["X-Request-ID"]
