"""Signing in with a password, for the admin too: behind a throttle, and with a code where a second factor is set up."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.contrib.auth.views import LoginView
from django.core import signing
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.second_factor import MOST_TYPED, accepts, has_second_factor
from voiceapp.accounts.throttle import CodeAttempt, LoginAttempt
from voiceapp.errors import Throttled
from voiceapp.formats import Facts

logger = logging.getLogger(__name__)

PROOF = "password of"
PROOF_S = 300
"""Seconds after the password within which the code must come."""


class PageLogin(AuthenticationForm):
    """Name and password; then, beside the `proof` that these were right, the code of those who have a second factor."""

    error_messages: ClassVar = {
        **AuthenticationForm.error_messages,
        "invalid_login": _("That name and password do not go together. Check both; capitals matter."),
        "invalid_code": _("That code is wrong, or was used already. Enter the next one."),
        "late": _("That took too long. Enter your name and password again."),
    }
    code = forms.CharField(required=False, max_length=MOST_TYPED)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.proof = self.data.get("proof", "")
        self.proven = _proven(self.proof)
        if self.proven is not None:
            del self.fields["username"], self.fields["password"]

    def clean(self) -> dict[str, Any]:
        name = self.proven.username if self.proven else self.cleaned_data.get("username")
        if self.proven is None and self.proof:
            self.proof = ""
            raise self._wrong("late")
        if self.proven is None and not (name and self.cleaned_data.get("password")):
            return dict(super().clean())
        address = address_of_request(self.request)
        attempt = CodeAttempt(self.proven) if self.proven else LoginAttempt(address, name)
        try:
            attempt.begin()
            if self.proven:
                self._take_code(self.proven)
            else:
                super().clean()
        except (Throttled, ValidationError) as refused:
            # A name that does not exist may be a password, typed into the wrong field.
            known = name if User.objects.filter(username=name).exists() else ""
            logger.warning("sign-in refused, %s", Facts(address=address, name=known, reason=refused.code))
            if isinstance(refused, Throttled):
                raise ValidationError(refused.message, code="throttled") from refused
            raise
        attempt.succeeded()
        if self.proven is None and has_second_factor(self.user_cache):
            self.proof = signing.dumps(self.user_cache.pk, salt=PROOF)
            raise ValidationError("", code="code_wanted")
        return dict(self.cleaned_data)

    def _take_code(self, user: User) -> None:
        if not accepts(user, self.cleaned_data.get("code", "")):
            user_login_failed.send(__name__, credentials={"username": user.username}, request=self.request)
            raise self._wrong("invalid_code")
        user.backend = settings.AUTHENTICATION_BACKENDS[0]
        self.user_cache = user

    def _wrong(self, code: str) -> ValidationError:
        return ValidationError(self.error_messages[code], code=code)


def _proven(proof: str) -> User | None:
    """Return the person whose password was right a moment ago."""
    try:
        pk = signing.loads(proof, salt=PROOF, max_age=PROOF_S)
    except signing.BadSignature:
        return None
    return User.objects.filter(pk=pk, is_active=True).first()


class PageLoginView(LoginView):
    authentication_form = PageLogin
    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return dict(super().get_context_data(**context, has_pages=settings.PUBLIC_PAGE != "off"))
