"""Signing in at a proxy, and with OpenID Connect at a provider on loopback."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
import pytest
from aiohttp import web
from asgiref.testing import ApplicationCommunicator
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIHandler
from django.test import AsyncClient
from django.urls import clear_url_caches, include, path
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.web import everywhere, listening
from voiceapp import urls
from voiceapp.accounts import openid
from voiceapp.drain import Drain
from voiceapp.health import Readiness
from voiceapp.server.front import Front
from voiceapp.server.limits import ServerLimits

AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
CLIENT, SECRET = "voiceapp-here", "quite-secret"


async def session_of(peer: str, *headers: tuple[bytes, bytes]) -> str:
    """Return the login that a request for the front page of the operators' site ends up with; empty without any."""
    front = Front(ASGIHandler(), ServerLimits(trusted_proxies=1), Drain(), Readiness())
    scope = {"type": "http", "method": "GET", "path": "/admin/", "query_string": b"", "http_version": "1.1"}
    sent = [(b"host", b"localhost"), (b"x-forwarded-proto", b"https"), *headers]
    asked = ApplicationCommunicator(front, {**scope, "scheme": "http", "client": (peer, 1234), "headers": sent})
    await asked.send_input({"type": "http.request", "body": b""})
    start = await asked.receive_output(60)
    await asked.wait(60)
    cookies = [value.decode() for name, value in start["headers"] if name.lower() == b"set-cookie"]
    client = AsyncClient()
    for cookie in cookies:
        name, _, value = cookie.partition(";")[0].partition("=")
        client.cookies[name] = value
    user = await (await client.asession()).aget("_auth_user_id") if cookies else None
    return (await User.objects.aget(pk=user)).username if user else ""


@pytest.mark.parametrize(
    ("peer", "header", "value", "expected"),
    [
        ("127.0.0.1", b"remote-user", b"alice", "alice"),
        ("::ffff:127.0.0.1", b"remote-user", b"alice", "alice"),
        ("127.0.0.1", b"remote-user", b"newcomer@example.org", "newcomer@example.org"),
        ("10.1.2.3", b"remote-user", b"alice", ""),
        ("127.0.0.1", b"x-remote-user", b"alice", ""),
        ("127.0.0.1", b"remote_user", b"alice", ""),
        ("127.0.0.1", b"remote-user", b"alice,bob", ""),
        ("127.0.0.1", b"remote-user", b"x" * 200, ""),
        ("127.0.0.1", b"remote-user", b"", ""),
    ],
)
async def test_a_proxy_of_ours_names_who_signed_in(
    alice: Member, settings: Settings, peer: str, header: bytes, value: bytes, expected: str
) -> None:
    settings.PROXY_USER_HEADER = "Remote-User"
    place = settings.MIDDLEWARE.index(AUTHENTICATION) + 1
    sign_in = "voiceapp.accounts.proxy_sign_in.ProxySignIn"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE[:place], sign_in, *settings.MIDDLEWARE[place:]]
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.RemoteUserBackend"]
    forged = (b"x-forwarded-for", b"127.0.0.1")
    assert await session_of(peer, (header, value), forged) == expected
    made = await User.objects.exclude(pk=alice.user.pk).afirst()
    assert (made.username if made else "") == ("" if expected == "alice" else expected)
    assert made is None or not (made.is_staff or made.is_superuser)
    notes = [entry.get_change_message() async for entry in LogEntry.objects.all()]
    assert notes == (["Signed in at the proxy from 127.0.0.1."] if expected else [])


class Issuer:
    """An OpenID provider whose person signs in at once."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.claims: dict[str, Any] = {"sub": "7", "email": "Zoe@Example.org", "email_verified": True}
        self.token: dict[str, Any] = {}
        """Claims of the token that differ from the right ones."""
        self.origin = self.nonce = ""

    async def answer(self, request: web.Request) -> web.Response:
        match request.path:
            case "/.well-known/openid-configuration":
                names = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
                addresses = {name: f"{self.origin}/{name[0]}" for name in names}
                return web.json_response({"issuer": self.origin, **addresses})
            case "/t":
                posted = await request.post()
                assert (posted["client_id"], posted["client_secret"], posted["code"]) == (CLIENT, SECRET, "once")
                assert posted["code_verifier"]
                usual = {"iss": self.origin, "aud": CLIENT, "sub": "7", "nonce": self.nonce, "exp": time.time() + 60}
                token = jwt.encode({**usual, **self.token}, self.key, algorithm="RS256", headers={"kid": "k"})
                return web.json_response({"id_token": token, "access_token": "x", "token_type": "Bearer"})
            case "/u":
                return web.json_response(self.claims)
            case "/j":
                jwk = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
                return web.json_response({"keys": [{**jwk, "kid": "k", "alg": "RS256"}]})
        return web.Response(status=404)


@asynccontextmanager
async def issuing(settings: Settings) -> AsyncIterator[Issuer]:
    issuer = Issuer()
    async with listening(everywhere(issuer.answer)) as issuer.origin:
        settings.OIDC_ISSUER = issuer.origin
        yield issuer


@pytest.fixture
def with_openid(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = CLIENT, SECRET
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, "voiceapp.accounts.openid.OpenIdBackend"]
    monkeypatch.setattr(urls, "urlpatterns", [path("", include(openid.urlpatterns)), *urls.urlpatterns])
    clear_url_caches()


@pytest.mark.parametrize(
    ("token", "claims", "expected"),
    [
        ({}, {}, "zoe@example.org"),
        ({"aud": [CLIENT, "another"]}, {}, "zoe@example.org"),
        ({"aud": "another"}, {}, ""),
        ({"iss": "https://another.example"}, {}, ""),
        ({"nonce": "another"}, {}, ""),
        ({"exp": 1}, {}, ""),
        ({}, {"sub": "8"}, ""),
        ({}, {"email_verified": False}, ""),
        ({}, {"email": None}, ""),
    ],
)
async def test_openid_connect_signs_in_whom_the_provider_knows(
    db: None, with_openid: None, settings: Settings, token: dict[str, Any], claims: dict[str, Any], expected: str
) -> None:
    client = AsyncClient()
    async with issuing(settings) as issuer:
        page = (await client.get("/login", {"next": "/docs"})).content.decode()
        assert "/login/openid?next=/docs" in page
        assert "/login/openid?next=/admin/" in (await client.get("/admin/", follow=True)).content.decode()
        begun = await client.get("/login/openid", {"next": "/docs"})
        asked = dict(parse_qsl(urlsplit(begun["Location"]).query))
        assert (asked["client_id"], asked["redirect_uri"]) == (CLIENT, "http://testserver/login/openid/callback")
        assert asked["code_challenge_method"] == "S256"
        issuer.nonce, issuer.token = asked["nonce"], token
        issuer.claims |= claims
        came = {"code": "once", "state": asked["state"]}
        ended = await client.get("/login/openid/callback", came)
        assert (ended.status_code, ended.get("Location")) == ((302, "/docs") if expected else (403, None))
        assert (await client.get("/login/openid/callback", came)).status_code == 403, "a state counts once"
    assert [user.username async for user in User.objects.all()] == ([expected] if expected else [])
    notes = [entry.get_change_message() async for entry in LogEntry.objects.all()]
    assert notes == (["Signed in with OpenID Connect from 127.0.0.1."] if expected else [])


async def test_a_provider_that_is_away_is_no_fault_of_this_server(
    alice: Member, with_openid: None, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with issuing(settings):
        pass
    client = AsyncClient()
    answer = await client.get("/login/openid")
    assert answer.status_code == 403
    assert "sign-in with OpenID Connect failed" in caplog.text
    assert (await client.get("/admin/", follow=True)).status_code == 200
    signed_in = await client.post("/login", {"username": "alice", "password": "alice-password"})
    assert signed_in.status_code == 302
