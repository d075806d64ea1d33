"""Every way into a session, knocked at with a real handshake, a real offer or a request for a grant."""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from websockets.exceptions import InvalidStatus

from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.realtime.webrtc.caller import post_offer

Outcome = tuple[int, str, str]
"""Status, and of a refusal its code and its sentence."""
LET_IN: Outcome = (200, "", "")
API = "/api/v1/webrtc/realtime"
GRANT = {"Content-Type": "application/json", "x-service-rtc-transport": "moq"}
FORWARDED = "upstream"
"""The model whose offers are passed on."""


@dataclass(frozen=True)
class Visitor:
    headers: dict[str, str] = field(default_factory=dict)
    origin: str | None = None
    """Of a page; a program has none."""

    def from_address(self, address: str) -> Visitor:
        """The same visitor, as a trusted proxy tells of them."""
        return Visitor({**self.headers, "X-Forwarded-For": address}, self.origin)

    @property
    def sent(self) -> dict[str, str]:
        """The headers of an HTTP request of theirs."""
        return self.headers if self.origin is None else {**self.headers, "Origin": self.origin}


def program(key: str | None) -> Visitor:
    return Visitor({"Authorization": f"Bearer {key}"} if key else {})


async def guest(product: Product) -> Visitor:
    """A fresh browser on the page."""
    return await asyncio.to_thread(_browse, product, False)


async def member(product: Product) -> Visitor:
    """Alice, signed in: a member of the account that the keys belong to."""
    return await asyncio.to_thread(_browse, product, True)


def _browse(product: Product, is_signed_in: bool) -> Visitor:
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    if is_signed_in:
        login = product.origin + "/login"
        browser.open(login, timeout=20).read()
        token = next(found.value for found in jar if found.name == "csrftoken")
        form = f"username=alice&password=alice-password&csrfmiddlewaretoken={token}".encode()
        browser.open(urllib.request.Request(login, form, {"Referer": login}), timeout=20).read()
    config = json.loads(browser.open(product.origin + "/voice/config", timeout=20).read())
    cookies = "; ".join(f"{found.name}={found.value}" for found in jar)
    return Visitor({"Cookie": cookies, "X-CSRFToken": config["csrf_token"]}, product.origin)


async def sign_out(product: Product, visitor: Visitor) -> None:
    async with (
        aiohttp.ClientSession(headers=visitor.sent) as browser,
        browser.post(f"{product.origin}/logout") as answer,
    ):
        assert answer.status == 200


async def _socket(url: str, visitor: Visitor, model: str | None) -> Outcome:
    try:
        async with call(url, model=model, headers=visitor.headers, origin=visitor.origin):
            return LET_IN
    except InvalidStatus as refused:
        response = refused.response
        return _refusal(response.status_code, bytes(response.body), dict(response.headers.raw_items()))


async def _post(product: Product, path: str, visitor: Visitor, model: str | None, offer: str, **more: str) -> Outcome:
    sent = {**visitor.sent, **more}
    status, body, headers = await post_offer(product.origin, None, offer, model=model, path=path, **sent)
    return LET_IN if status == 200 else _refusal(status, body, headers)


def _refusal(status: int, body: str | bytes, headers: dict[str, str]) -> Outcome:
    told: dict[str, Any] = json.loads(body)
    lower = {name.lower(): value for name, value in headers.items()}
    assert told.keys() == {"code", "message", "request_id"}
    assert (lower["content-type"], lower["x-request-id"]) == ("application/json", told["request_id"])
    assert not told["code"].startswith("Throttling") or int(lower["retry-after"]) > 0
    return status, told["code"], told["message"]


Knock = Callable[[Product, Visitor, str | None, str], Awaitable[Outcome]]


async def api_socket(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
    return await _socket(product.url, visitor, model)


async def page_socket(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
    return await _socket(product.page_url, visitor, model)


async def api_offer(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
    return await _post(product, API, visitor, model, offer)


async def page_offer(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
    return await _post(product, "/voice/webrtc", visitor, model, offer)


async def api_grant(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
    return await _post(product, API, visitor, model, "{}", **GRANT)


async def page_grant(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
    return await _post(product, "/voice/aoq", visitor, model, "{}", **GRANT)


def forwarded(knock: Knock) -> Knock:
    """The same door with the model of another service in the place of our own."""

    async def knock_for_upstream(product: Product, visitor: Visitor, model: str | None, offer: str) -> Outcome:
        return await knock(product, visitor, FORWARDED if model == "voice" else model, offer)

    return knock_for_upstream


OF_PROGRAMS: dict[str, Knock] = {
    "API socket": api_socket,
    "API offer": api_offer,
    "forwarded API offer": forwarded(api_offer),
    "API grant": api_grant,
    "forwarded API grant": forwarded(api_grant),
}
OF_THE_PAGE: dict[str, Knock] = {
    "page socket": page_socket,
    "page offer": page_offer,
    "forwarded page offer": forwarded(page_offer),
    "page grant": page_grant,
    "forwarded page grant": forwarded(page_grant),
}
