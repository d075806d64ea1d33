"""Signing in on the page: Django's own view, behind the throttle, in the page's words."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.utils.translation import gettext_lazy as _

from voiceapp.accounts.throttle import ThrottledLogin


class PageLogin(ThrottledLogin):
    """The form of the page; the operators' site has its own."""

    error_messages: ClassVar = {
        **AuthenticationForm.error_messages,
        "invalid_login": _("That name and password do not go together. Check both; capitals matter."),
    }


class PageLoginView(LoginView):
    authentication_form = PageLogin
    redirect_authenticated_user = True
