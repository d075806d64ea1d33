"""What every operation owes its caller, whatever it is sent: one shape, a name for the request, no HTML."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.auth import KEY_WANTED
from voiceapp.errors import InvalidApiKey

FINE = {"model": "m", "input": {"texts": ["a"]}}
FAMILIES = ("/api/v1", "/compatible-mode/v1", "/compatible-api/v1")


@pytest.fixture(autouse=True)
def _echoing(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.contract.echo"


@pytest.fixture
def client() -> AsyncClient:
    return AsyncClient(raise_request_exception=False)


async def post(client: AsyncClient, path: str, body: Any, who: Member, **headers: str) -> HttpResponse:
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    headers = {"Authorization": who.authorization, **headers}
    content_type = headers.pop("Content-Type", "application/json")
    return await client.generic("POST", path, content, content_type=content_type, headers=headers)


def assert_refused(answer: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """That the answer has this status and the shape of its family; returns its body."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    body: dict[str, Any] = answer.json()
    path = answer.request["path"]
    assert body["request_id"] == answer["X-Request-ID"]
    if path.startswith("/compatible-mode"):
        assert body.keys() == {"error", "request_id"}
    else:
        assert body.keys() - {"error"} == {"code", "message", "request_id"}
        assert body["code"] == code
        assert ("error" in body) == path.startswith("/compatible-api")
    if "error" in body:
        assert body["error"].keys() == {"message", "type", "code", "param"}
    assert (body.get("error") or body)["message"]
    return body


def nested(depth: int) -> str:
    return '{"model":"m","input":{"texts":"a"},"tools":[' + '{"a":' * depth + "1" + "}" * depth + "]}"


HOSTILE = {
    "nothing": b"",
    "half an object": "{",
    "no JSON": "texts=a",
    "null": "null",
    "a number": "1",
    "an array": [],
    "a form": b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--x--\r\n',
    "no UTF-8": b'{"model":"\xff"}',
    "half a surrogate pair as bytes": b'{"model":"\xed\xa0\x80","input":{"texts":"a"}}',
    "half a surrogate pair": '{"model":"\\ud800","input":{"texts":"a"}}',
    "half a surrogate pair in a name": '{"model":"m","input":{"texts":"a"},"\\udc00":1}',
    "half a surrogate pair where anything goes": '{"model":"m","input":{"texts":"a"},"tools":[{"a":["\\udfff"]}]}',
    "a NUL": '{"model":"a\\u0000b","input":{"texts":"a"}}',
    "a NUL as a byte": b'{"model":"a\x00b","input":{"texts":"a"}}',
    "a bottomless array": "[" * 500_000,
    "an object too deep": nested(70),
    "not a number": '{"model":"m","input":{"texts":"a"},"ratio":NaN}',
    "infinity": '{"model":"m","input":{"texts":"a"},"ratio":1e999}',
    "infinity where anything goes": '{"model":"m","input":{"texts":"a"},"tools":[{"a":-1e999}]}',
    "a number that no double can be": '{"model":"m","input":{"texts":"a"},"tools":[{"a":' + "9" * 400 + "}]}",
    "an endless number": '{"model":"m","input":{"texts":"a"},"ratio":' + "9" * 5000 + "}",
    "a number for a string": FINE | {"model": 1},
    "true for a number": {"model": "m", "input": {"texts": "a", "count": True}},
    "a string for a number": {"model": "m", "input": {"texts": "a", "count": "3"}},
    "a list for an object": FINE | {"input": []},
    "a string for an object": FINE | {"input": "a"},
    "an empty name": FINE | {"model": ""},
    "a word that is none of two": FINE | {"mode": "medium"},
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
async def test_it_refuses_a_hostile_body_in_each_familys_shape(client: AsyncClient, alice: Member, body: Any) -> None:
    for root in FAMILIES:
        assert_refused(await post(client, f"{root}/echo", body, alice), 400, "InvalidParameter")


async def test_it_refuses_a_body_beyond_two_megabytes(client: AsyncClient, alice: Member) -> None:
    for root in FAMILIES:
        body = FINE | {"more": "x" * 2 * 1024 * 1024}
        assert_refused(await post(client, f"{root}/echo", body, alice), 413, "InvalidParameter")


async def test_it_takes_a_body_of_almost_two_megabytes(client: AsyncClient, alice: Member) -> None:
    body = FINE | {"more": "x" * (2 * 1024 * 1024 - 100)}
    assert (await post(client, "/api/v1/echo", body, alice)).status_code == 200


async def test_it_ignores_what_it_does_not_know(client: AsyncClient, alice: Member) -> None:
    answer = await post(client, "/api/v1/echo?stray=1", FINE | {"kwargs": {"a": None}, "seed": 3}, alice)
    assert answer.status_code == 200
    assert answer.json()["asked"]["input"] == {"texts": ["a"], "count": 1}


async def test_it_reads_json_whatever_the_content_type_says(client: AsyncClient, alice: Member) -> None:
    for content_type in ("application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded"):
        answer = await post(client, "/api/v1/echo", FINE, alice, **{"Content-Type": content_type})
        assert answer.status_code == 200, content_type


async def test_it_reads_whole_surrogate_pairs_and_a_byte_order_mark(client: AsyncClient, alice: Member) -> None:
    body = b"\xef\xbb\xbf" + rb'{"model":"\ud83d\ude00","input":{"texts":"\\u0000"}}'
    asked = (await post(client, "/api/v1/echo", body, alice)).json()["asked"]
    assert (asked["model"], asked["input"]["texts"]) == ("😀", r"\u0000")


async def test_it_refuses_a_compressed_body(client: AsyncClient, alice: Member) -> None:
    answer = await post(client, "/api/v1/echo", FINE, alice, **{"Content-Encoding": "gzip"})
    assert_refused(answer, 415, "InvalidParameter")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "model is required."),
        ({"model": "m", "input": {"texts": 5}}, "input.texts must be a string or must be an array."),
        ({"model": "m", "input": {"texts": ["a", 5]}}, "input.texts.1 must be a string."),
        (FINE | {"pieces": [1]}, "pieces.0 must be a string or must be an object."),
    ],
)
async def test_it_names_the_field_to_blame(client: AsyncClient, alice: Member, body: Any, message: str) -> None:
    refused = assert_refused(await post(client, "/compatible-mode/v1/echo", body, alice), 400, "InvalidParameter")
    code = {"type": "invalid_request_error", "code": "invalid_parameter"}
    assert refused["error"] == {"message": message, "param": message.partition(" ")[0], **code}


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/pick/a%00b",
        "/api/v1/pick/a?page=%00",
        "/api/v1/pick/a?page=x",
        "/api/v1/pick/a?" + "&".join(f"p{number}=1" for number in range(1001)),
    ],
    ids=["NUL in the path", "NUL in the query", "a word for a number", "a thousand and one parameters"],
)
async def test_it_refuses_a_hostile_address(client: AsyncClient, alice: Member, address: str) -> None:
    answer = await client.get(address, headers={"Authorization": alice.authorization})
    assert_refused(answer, 400, "InvalidParameter")


@pytest.mark.parametrize("root", FAMILIES)
@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer sk-nonsense", "Basic YTpi", "Bearer \u00ff"])
async def test_it_wants_a_key_before_it_reads(client: AsyncClient, db: None, root: str, authorization: str) -> None:
    for address in (f"{root}/echo", f"{root}/echo/"):
        answer = await client.generic(
            "POST", address, b"{", "application/json", headers={"Authorization": authorization}
        )
        body = assert_refused(answer, 401, "InvalidApiKey")
        has_key = authorization in ("Bearer sk-nonsense", "Bearer \u00ff")
        message = body["error"]["message"] if "error" in body else body["message"]
        assert message == (InvalidApiKey().message if has_key else KEY_WANTED)
        assert answer["WWW-Authenticate"] == "Bearer"
        if "error" in body:
            assert body["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    "address",
    ["/api/v1/nowhere", "/api/v1/", "/api/v9/echo", "/compatible-mode/v1/nowhere/", "/compatible-api/nowhere"],
)
async def test_it_says_in_json_that_nothing_is_there(client: AsyncClient, address: str, settings: Settings) -> None:
    for settings.DEBUG in (False, True):
        assert_refused(await client.get(address), 404, "NotFound")


@pytest.mark.parametrize(
    ("how", "status", "code", "compatible_code", "compatible_type"),
    [
        ("denied", 403, "AccessDenied", "access_denied", "permission_error"),
        ("model", 404, "ModelNotFound", "model_not_found", "invalid_request_error"),
        ("value", 400, "InvalidParameter", "invalid_parameter", "invalid_request_error"),
        ("rate", 429, "Throttling.RateQuota", "rate_limit_exceeded", "rate_limit_error"),
        ("lane", 503, "Throttling.Concurrency", "rate_limit_exceeded", "server_error"),
        ("down", 503, "ModelUnavailable", "model_unavailable", "server_error"),
        ("bug", 500, "InternalError", "internal_error", "server_error"),
        ("html", 418, "InvalidParameter", "invalid_parameter", "invalid_request_error"),
        ("other", 400, "InvalidParameter", "invalid_parameter", "invalid_request_error"),
    ],
)
async def test_it_translates_what_is_raised(
    client: AsyncClient, how: str, status: int, code: str, compatible_code: str, compatible_type: str
) -> None:
    assert_refused(await client.get(f"/api/v1/fail/{how}"), status, code)
    flat = assert_refused(await client.get(f"/compatible-api/v1/fail/{how}"), status, code)
    compatible = assert_refused(await client.get(f"/compatible-mode/v1/fail/{how}"), status, code)
    assert (compatible["error"]["code"], compatible["error"]["type"]) == (compatible_code, compatible_type)
    assert flat["error"] == compatible["error"]


async def test_it_says_when_to_come_back(client: AsyncClient) -> None:
    assert (await client.get("/api/v1/fail/rate"))["Retry-After"] == "7"
    assert (await client.get("/compatible-mode/v1/fail/lane"))["Retry-After"] == "1"
    assert (await client.get("/api/v1/fail/down"))["Retry-After"] == "1"


async def test_it_keeps_the_inside_of_a_fault_to_the_log(client: AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "voiceapp.http.middleware"):
        answer = await client.get("/api/v1/fail/bug")
    assert "secret" not in answer.content.decode()
    record = next(record for record in caplog.records if record.name == "voiceapp.http.middleware")
    assert answer["X-Request-ID"] in record.getMessage()
    assert record.exc_info is not None
    assert "a secret internal" in str(record.exc_info[1])


async def test_it_translates_views_that_are_not_ninjas(client: AsyncClient) -> None:
    assert_refused(await client.get("/api/v1/plain/"), 403, "AccessDenied")


async def test_it_uses_the_name_the_server_gave(client: AsyncClient) -> None:
    answer = await client.request(path="/api/v1/nowhere", query_string=b"", state={"request_id": "given"})
    assert answer["X-Request-ID"] == "given"


async def test_it_lets_no_key_pass_over_http_where_https_is_spoken(
    client: AsyncClient, alice: Member, settings: Settings
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 60
    assert_refused(await post(client, "/api/v1/echo", FINE, alice), 403, "AccessDenied")
    secure = AsyncClient()
    answer = await secure.get("/api/v1/pick/a", secure=True, headers={"Authorization": alice.authorization})
    assert answer.status_code == 200
    assert answer["Strict-Transport-Security"].startswith("max-age=60")


async def test_it_forbids_keeping_and_guessing(client: AsyncClient, alice: Member) -> None:
    answer = await post(client, "/api/v1/echo", FINE, alice)
    assert answer["Cache-Control"] == "no-store"
    assert answer["X-Content-Type-Options"] == "nosniff"


async def test_it_leaves_pages_alone(client: AsyncClient, settings: Settings) -> None:
    settings.ROOT_URLCONF = "voiceapp.urls"
    answer = await client.get("/apiary")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")
    assert "X-Request-ID" not in answer


async def test_it_knows_nothing_of_cookies(alice: Member) -> None:
    browser = AsyncClient(enforce_csrf_checks=True)
    await browser.aforce_login(alice.user)
    answer = await post(browser, "/api/v1/echo", FINE, alice)
    assert answer.status_code == 200
    assert not answer.cookies
    assert_refused(await browser.post("/api/v1/echo", FINE, "application/json"), 401, "InvalidApiKey")


async def test_it_says_how_long_the_answer_is(client: AsyncClient, alice: Member) -> None:
    for address in ("/api/v1/pick/a", "/api/v1/nowhere"):
        answer = await client.get(address, headers={"Authorization": alice.authorization})
        assert int(answer["Content-Length"]) == len(answer.content)
