"""Pages of other origins call the API with a key, and read nothing that a cookie opens."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member

ELSEWHERE = "https://app.example.org"
ALLOWED = "Access-Control-Allow-Origin"
OPERATIONS = ("/v1/realtime/calls", "/compatible-mode/v1/chat/completions", "/api/v1/webrtc/realtime", "/api/v1/tasks")


async def get(client: AsyncClient, path: str, origin: str = ELSEWHERE, **headers: str) -> HttpResponse:
    return await client.get(path, headers={"Origin": origin, **headers})


@pytest.mark.parametrize("path", [*OPERATIONS, "/api-ws/v1/realtime"])
async def test_a_preflight_needs_no_key_and_is_cached(async_client: AsyncClient, path: str) -> None:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-dashscope-async",
    }
    response = await async_client.options(path, headers={"Origin": ELSEWHERE, **asked})
    assert (response.status_code, response[ALLOWED]) == (200, "*")
    assert response["Access-Control-Allow-Headers"] == "*, authorization"
    assert "POST" in response["Access-Control-Allow-Methods"]
    assert int(response["Access-Control-Max-Age"]) >= 3600


async def test_any_page_reads_what_a_key_opens_and_why_it_is_refused(async_client: AsyncClient, alice: Member) -> None:
    key = {"Authorization": alice.authorization}
    for path, headers, status in (
        ("/v1/models", key, 200),
        ("/api/v1/tasks", key, 200),
        ("/v1/models", {}, 401),
        ("/v1/nothing", key, 404),
        ("/api-ws/v1/realtime", {}, 426),
    ):
        response = await get(async_client, path, **headers)
        assert (response.status_code, response[ALLOWED]) == (status, "*")
        assert response["Access-Control-Expose-Headers"] == "*"
        assert "Access-Control-Allow-Credentials" not in response


@pytest.mark.parametrize(("how", "status"), [("rate", 429), ("down", 503), ("bug", 500)])
async def test_any_page_reads_that_it_is_to_come_again(settings: Settings, how: str, status: int) -> None:
    settings.ROOT_URLCONF = "tests.contract.echo"
    response = await get(AsyncClient(raise_request_exception=False), f"/v1/fail/{how}")
    assert (response.status_code, response[ALLOWED]) == (status, "*")


@pytest.mark.parametrize("path", ["/", "/voice/config", "/voice/webrtc", "/voice/aoq", "/docs", "/admin/", "/apis"])
async def test_no_page_of_another_origin_reads_what_a_cookie_opens(
    async_client: AsyncClient, alice: Member, path: str
) -> None:
    await async_client.aforce_login(alice.user)
    assert ALLOWED not in await get(async_client, path)


@pytest.mark.parametrize("path", ["/v1/models", "/api/v1/tasks", "/api/v1/tokens"])
async def test_a_cookie_is_no_key(async_client: AsyncClient, alice: Member, path: str) -> None:
    await async_client.aforce_login(alice.user)
    assert (await get(async_client, path)).status_code in (401, 405)
    assert (await async_client.post(path, headers={"Origin": ELSEWHERE})).status_code in (401, 405)


async def test_an_operator_names_the_origins(async_client: AsyncClient, settings: Settings) -> None:
    settings.CORS_ALLOW_ALL_ORIGINS, settings.CORS_ALLOWED_ORIGINS = False, [ELSEWHERE]
    assert (await get(async_client, "/v1/models"))[ALLOWED] == ELSEWHERE
    assert ALLOWED not in await get(async_client, "/v1/models", "https://app.example.org.evil.example")
