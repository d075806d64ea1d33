"""Signing in with OpenID Connect. The address of its issuer tells all others (OpenID Connect Discovery 1.0)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.functional import SimpleLazyObject
from jwt import PyJWTError
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from voiceapp.accounts.proxy_sign_in import is_user_name

logger = logging.getLogger(__name__)

ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
"""Addresses by the library's names of them, and the issuer's."""

_found: dict[str, dict[str, Any]] = {}
"""The issuer's own description, once it has been asked."""


def _issuer() -> dict[str, Any]:
    issuer = settings.OIDC_ISSUER
    if issuer not in _found:
        address = f"{issuer}/.well-known/openid-configuration"
        response = requests.get(address, timeout=settings.OIDC_TIMEOUT, allow_redirects=False)
        response.raise_for_status()
        said = response.json()
        if said["issuer"].rstrip("/") != issuer:
            raise ValueError(f"{address} is of the issuer {said['issuer']}")
        _found[issuer] = said
    return _found[issuer]


class Discovered:
    """Part of a class of the library: it knows the addresses that the issuer tells, which is asked when one is used.

    Django makes its backends for every page, which must not need the issuer.
    """

    @staticmethod
    def get_settings(name: str, *default: Any) -> Any:
        if name in ENDPOINTS:
            return SimpleLazyObject(lambda: _issuer()[ENDPOINTS[name]])
        return import_from_settings(name, *default)


class OpenIdBackend(Discovered, OIDCAuthenticationBackend):
    """Logins by their e-mail addresses as user names; one that is not known is made, without any rights."""

    def verify_token(self, token: Any, **options: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super().verify_token(token, **options)
        audience = payload.get("aud")
        if self.OIDC_RP_CLIENT_ID not in (audience if isinstance(audience, list) else [audience]):
            raise SuspiciousOperation("The token is for another program.")
        if payload.get("iss") != _issuer()["issuer"]:
            raise SuspiciousOperation("The token is of another issuer.")
        return payload

    def get_userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        claims: dict[str, Any] = super().get_userinfo(access_token, id_token, payload)
        if claims.get("sub") != payload.get("sub"):  # OpenID Connect Core 1.0, 5.3.2
            raise SuspiciousOperation("The claims are of another person.")
        return claims

    def verify_claims(self, claims: dict[str, Any]) -> bool:
        email = claims.get("email")
        return isinstance(email, str) and is_user_name(email) and claims.get("email_verified") is not False

    def get_username(self, claims: dict[str, Any]) -> str:
        return str(claims["email"]).lower()

    def filter_users_by_claims(self, claims: dict[str, Any]) -> QuerySet[User]:
        return User.objects.filter(username=self.get_username(claims))


class Begin(Discovered, OIDCAuthenticationRequestView):
    """Sends the browser to the issuer."""


class Callback(Discovered, OIDCAuthenticationCallbackView):
    """Takes the browser back, and signs its person in."""

    def login_failure(self) -> HttpResponse:
        return render(self.request, "403.html", status=403)


def _saying_why_not(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    def answer(request: HttpRequest) -> HttpResponseBase:
        try:
            return view(request)
        except (requests.RequestException, PyJWTError, SuspiciousOperation, KeyError, ValueError) as error:
            logger.warning("sign-in with OpenID Connect failed: %s", error)
            return render(request, "403.html", status=403)

    return answer


urlpatterns: list[URLPattern] = [
    path("login/openid", _saying_why_not(Begin.as_view()), name="openid"),
    path("login/openid/callback", _saying_why_not(Callback.as_view()), name="oidc_authentication_callback"),
]
