"""The page on which people who sign in with a password set up a second factor, or remove it."""

from __future__ import annotations

from typing import Any

import segno
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.second_factor import has_second_factor, new_secret, setup_address, turn_off, turn_on
from voiceapp.accounts.throttle import LoginAttempt
from voiceapp.errors import Throttled
from voiceapp.pages.login import PageLogin
from voiceapp.sealing import seal, unseal

HELD = "new_second_factor"
"""Name under which a person's Django session holds the secret until a code has shown that it arrived."""


@login_required
@never_cache
def two_factor(request: HttpRequest) -> HttpResponseBase:
    if not request.user.has_usable_password():
        raise Http404
    return _removing(request) if has_second_factor(request.user) else _setting_up(request)


def _setting_up(request: HttpRequest) -> HttpResponse:
    secret = unseal(request.session.get(HELD, "")) or new_secret()
    error = ""
    if "code" in request.POST:
        if codes := turn_on(request.user, secret, request.POST["code"]):
            del request.session[HELD]
            return _shown(request, codes=codes)
        error = PageLogin.error_messages["invalid_code"]
    request.session[HELD] = seal(secret)
    code = segno.make_qr(setup_address(request.user, secret))
    return _shown(request, secret=secret, error=error, picture=code.svg_data_uri(light="#fff"))


def _removing(request: HttpRequest) -> HttpResponseBase:
    if "password" not in request.POST:
        return _shown(request)
    attempt = LoginAttempt(address_of_request(request), request.user.username)
    try:
        attempt.begin()
    except Throttled as refused:
        return _shown(request, error=refused.message)
    if not request.user.check_password(request.POST["password"]):
        return _shown(request, error=_("That is not your password."))
    attempt.succeeded()
    turn_off(request.user)
    return redirect("two-factor")


def _shown(request: HttpRequest, **found: Any) -> HttpResponse:
    return render(request, "registration/two_factor.html", {**found, "has_pages": settings.PUBLIC_PAGE != "off"})
