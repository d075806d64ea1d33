"""Accounts, workspaces and keys in the operators' site; `ledger_admin` shows what they used.

A key is shown once, by the HTTP response that creates it.
"""

from __future__ import annotations

import hashlib
from copy import deepcopy
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.cache import cache
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from voiceapp.accounts import ledger_admin
from voiceapp.accounts.auth import DEFAULT_WORKSPACE, GUESTS, key_directory
from voiceapp.accounts.budgets import forecast, month_of
from voiceapp.accounts.key_revocation_admin import KeyRevocation
from voiceapp.accounts.keys import give_secret
from voiceapp.accounts.models import (
    Account,
    ApiKey,
    GuestSite,
    Membership,
    MintedKey,
    MonthlySpend,
    Scope,
    Workspace,
    all_scopes,
)
from voiceapp.accounts.own_rows import OwnFilter, OwnRows, own, sees_all
from voiceapp.catalogue.lookup import catalogue
from voiceapp.formats import NANO, dollars
from voiceapp.http.admin import LABELS, RecordsAdmin, choice_filter, column, shown_once

__all__ = ["ApiKeyAdmin", "ledger_admin"]

REMEMBERED_S = 600
"""Time within which the form for a new key, sent again unchanged, counts as a reload of its page."""


class WorkspaceInline(TabularInline):
    model = Workspace
    extra = 0
    readonly_fields = ("public_id",)
    can_delete = False


class MembershipInline(OwnRows, TabularInline):
    model = Membership
    extra = 0
    verbose_name = "person"
    verbose_name_plural = "people who may talk in its name"


@admin.register(Account)
class AccountAdmin(OwnRows, ModelAdmin):
    account_path = "pk"
    list_display = ("name", "is_active", "created_at")
    list_filter = ("is_active",)
    search_fields = ("name",)
    readonly_fields = ("created_at",)
    inlines = (WorkspaceInline, MembershipInline)

    def save_model(self, request: HttpRequest, obj: Account, form: forms.ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        key_directory.forget()

    def save_related(self, request: HttpRequest, form: forms.ModelForm, formsets: list[Any], change: bool) -> None:
        """An account has at least one workspace."""
        super().save_related(request, form, formsets, change)
        if not form.instance.workspaces.exists():
            form.instance.workspaces.create(name=DEFAULT_WORKSPACE)


@admin.register(GuestSite)
class GuestSiteAdmin(OwnRows, ModelAdmin):
    list_display = ("origin", "sessions_at_once", "sessions_per_hour", "session_s", "is_active")
    search_fields = ("origin",)
    list_select_related = ("account",)
    fields = ("origin", "sessions_at_once", "sessions_per_hour", "session_s", "snippet", "account")
    readonly_fields = ("snippet", "account")

    def get_queryset(self, request: HttpRequest) -> QuerySet[GuestSite]:
        return super().get_queryset(request).annotate(script=Value(request.build_absolute_uri(reverse("embed-script"))))

    @admin.display(description="for its pages")
    def snippet(self, row: GuestSite) -> str:
        """The one line that a page of the site needs."""
        return f'<script src="{row.script}" async></script>' if row.pk else "Save the site to see its line."

    @admin.display(boolean=True, description="active")
    def is_active(self, row: GuestSite) -> bool:
        """Switched off with the site's account."""
        return bool(row.account.is_active)


@admin.register(Workspace)
class WorkspaceAdmin(OwnRows, ModelAdmin):
    list_display = ("name", "account", "public_id")
    list_filter = (("account", OwnFilter),)
    list_select_related = ("account",)
    search_fields = ("name", "account__name", "public_id")
    readonly_fields = ("public_id",)


class ModelNames(forms.CharField):
    """A list of model names, one on a line; each must be the name or an alias of a model."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        names = list(dict.fromkeys(super().clean(value).split()))
        unknown = [name for name in names if not catalogue().is_known(name)]
        if unknown:
            raise forms.ValidationError(f"This server has no model {', '.join(unknown)}.")
        return names


class Dollars(forms.DecimalField):
    """US dollars to a person, nano-dollars in the row."""

    widget = UnfoldAdminDecimalFieldWidget

    def prepare_value(self, value: Any) -> Any:
        return dollars(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> int | None:
        amount = super().clean(value)
        return None if amount is None else int(amount * NANO)


class KeyForm(forms.ModelForm):
    """Fields of a key that an operator may edit; its text is not one of them."""

    lasts = forms.TypedChoiceField(
        label="Expires",
        choices=[(30, "in 30 days"), (90, "in 90 days"), ("", "never")],
        coerce=int,
        empty_value=None,
        required=False,
        initial=90,
        widget=UnfoldAdminSelectWidget,
    )
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        initial=all_scopes,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What it may be used for.",
    )
    allowed_models = ModelNames(
        required=False, help_text="The only models it may use, by name or alias, one on a line. Empty allows all."
    )
    monthly_budget_nano = Dollars(
        label="Monthly budget (US dollars)",
        required=False,
        min_value=0,
        max_value=1_000_000,
        decimal_places=6,
        help_text=(
            "What it may spend in a calendar month (UTC) at the ledger's prices, whatever it is used for: tokens, "
            "seconds of audio, characters, images, videos and conversations. When it is used up, calls and tasks are "
            "refused with 403 and open conversations end. What has no price costs nothing. Empty means no limit."
        ),
    )

    class Meta:
        model = ApiKey
        fields = (
            "workspace",
            "name",
            "scopes",
            "allowed_models",
            "monthly_budget_nano",
            "task_priority",
            "is_front",
            "expires_at",
        )

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError("This time has passed already.")
        return expires_at

    def save(self, commit: bool = True) -> Any:
        if self.instance.pk is None and (days := self.cleaned_data["lasts"]):
            self.instance.expires_at = timezone.now() + timedelta(days=days)
        return super().save(commit)


def _sent(request: HttpRequest) -> str:
    held = sorted((name, *values) for name, values in request.POST.lists())
    digest = hashlib.sha256(f"{request.session.session_key} {held}".encode()).hexdigest()
    return f"new-key-{digest}"


KeyStateFilter = choice_filter(
    "state",
    {
        "usable": ("Usable", Q(revoked_at=None) & ~Q(expires_at__lte=Now())),
        "expired": ("Expired", Q(revoked_at=None, expires_at__lte=Now())),
        "revoked": ("Revoked", Q(revoked_at__isnull=False)),
    },
)


@admin.register(ApiKey)
class ApiKeyAdmin(OwnRows, KeyRevocation):
    """Keys: scopes and limits can be changed while the key is usable; its text and workspace cannot.

    Keys that cannot be used any more may be deleted.
    """

    account_path = "workspace__account"
    form = KeyForm
    list_display = ("name", "shown", "workspace", "state", "last_used_at", "expires_at", "spent_this_month", "left")
    list_filter = (KeyStateFilter, ("workspace__account", OwnFilter))
    list_select_related = ("workspace__account",)
    search_fields = ("name", "prefix", "last_four", "workspace__name", "workspace__account__name")
    actions = ("revoke",)
    change_form_template = "admin/accounts/apikey/change_form.html"
    facts = ("workspace", "shown", "state", "created_at", "revoked_at", "last_used_at", "spent_this_month", "left")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        this_month = MonthlySpend.objects.filter(key=OuterRef("pk"), month=month_of(timezone.now()))
        rows: QuerySet[ApiKey] = super().get_queryset(request)
        return rows.annotate(spent_nano=Subquery(this_month.values("spent_nano")))

    shown = column("shown", "key")

    @display(description="state", label=LABELS)
    def state(self, row: ApiKey) -> str:
        return row.state(timezone.now())

    @admin.display(description="spent this month")
    def spent_this_month(self, row: ApiKey) -> str:
        return f"{dollars(row.spent_nano or 0)} $"

    @admin.display(description="budget left")
    def left(self, row: ApiKey) -> str | None:
        """Return the rest of the month's budget, and for how long at the month's pace."""
        if row.monthly_budget_nano is None:
            return None
        now, spent = timezone.now(), row.spent_nano or 0
        rest = max(0, row.monthly_budget_nano - spent)
        month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        until = (month + timedelta(days=31)).replace(day=1)
        lasts = forecast(rest, spent, since=max(month, row.created_at), now=now, until=until)
        return f"{dollars(rest)} of {dollars(row.monthly_budget_nano)} $, {lasts}"

    def get_form(self, request: HttpRequest, obj: ApiKey | None = None, change: bool = False, **options: Any) -> Any:
        """Members of an account give no rights over the server."""
        form = super().get_form(request, obj, change, **options)
        if "scopes" in form.base_fields and not sees_all(request.user):
            form.base_fields["scopes"] = scopes = deepcopy(form.base_fields["scopes"])
            scopes.choices = [(scope, label) for scope, label in Scope.choices if scope != Scope.ADMIN]
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Choose the workspace where an account has only one."""
        guests = Q(account__name=GUESTS) | Q(account__guest_site__isnull=False)
        found = own(Workspace.objects.exclude(guests), request.user)[:2]
        return {"workspace": found[0].pk if len(found) == 1 else None, **super().get_changeform_initial_data(request)}

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        """All there is to decide about a new key; about an old one, what it is and what may still be decided."""
        decided = [name for name in KeyForm.Meta.fields if obj is None or name != "workspace"]
        if obj is None:
            decided[-1] = "lasts"  # in the place of a time
        if not sees_all(request.user) or (obj is not None and not obj.is_usable(timezone.now())):
            decided.remove("monthly_budget_nano")  # `left` says it in dollars
        if not sees_all(request.user):
            decided.remove("is_front")
        return (*self.facts, *decided) if obj is not None else tuple(decided)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return () if obj is None else self.facts

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        is_final = obj is not None and not obj.is_usable(timezone.now())
        return bool(super().has_change_permission(request, obj)) and not is_final

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """A usable key is revoked first, so that what is open with it ends in order."""
        usable = obj is not None and obj.is_usable(timezone.now())
        return bool(super().has_delete_permission(request, obj)) and not usable

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        one_button = {"show_save_and_continue": False, "show_save_and_add_another": False}
        if request.method == "POST" and cache.get(_sent(request)):
            # The page with the key cannot be shown again; reloading it would make another key by accident.
            self.message_user(
                request,
                "This form was sent already, and its key was shown then. Choose another name to make one more.",
                messages.WARNING,
            )
            return HttpResponseRedirect(reverse("admin:accounts_apikey_changelist"))
        return super().add_view(request, form_url, {**(extra_context or {}), **one_button})

    def save_model(self, request: HttpRequest, obj: ApiKey, form: forms.ModelForm, change: bool) -> None:
        if not change:
            request.shown_once = give_secret(obj)
        super().save_model(request, obj, form, change)
        key_directory.forget()

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """Show the key, on the only page that ever holds it."""
        cache.set(_sent(request), True, REMEMBERED_S)
        return shown_once(
            self.admin_site,
            request,
            title="Copy this key now",
            warning="This is the only time the key is shown. The server keeps only a hash of it.",
            label=f"Key of {obj.name}",
            secret=request.shown_once,
            lines=[
                "Copy it and put it where your program reads its secrets.",
                f"Later lists show it as {obj.shown}.",
            ],
            next_url=reverse("admin:accounts_apikey_changelist"),
        )


@admin.register(MintedKey)
class MintedKeyAdmin(OwnRows, RecordsAdmin):
    """Temporary keys that have not expired. They are revoked with their key."""

    account_path = "key__workspace__account"
    list_display = ("key", "workspace", "rights", "made_at", "expires_at")
    list_display_links = None
    list_select_related = ("key__workspace__account",)
    list_filter = (("key__workspace__account", OwnFilter),)
    search_fields = ("key__name", "key__last_four")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MintedKey]:
        rows: QuerySet[MintedKey] = super().get_queryset(request)
        return rows.filter(expires_at__gt=timezone.now(), key__revoked_at__isnull=True)

    def has_delete_permission(self, request: HttpRequest, obj: MintedKey | None = None) -> bool:
        """Only with their key."""
        return not request.resolver_match.url_name.startswith("accounts_mintedkey")

    workspace = column("key.workspace", "workspace")

    @admin.display(description="for")
    def rights(self, row: MintedKey) -> str:
        return "realtime only" if row.realtime_only else "all that its key is for"
