"""Webhook endpoints in the operators' site; `log_admin` shows what was delivered to them.

A signing secret is shown once, by the page that follows its making; what may be shown is remembered in the session, the
secret itself is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from voiceapp.accounts.own_rows import OwnFilter, OwnRows
from voiceapp.errors import InvalidParameter, RequestRefused
from voiceapp.http.admin import LABELS, shown_once
from voiceapp.webhooks import log_admin, store
from voiceapp.webhooks.events import MEANINGS, NEVER_HERE, TEST_KIND, EventKind, sample_envelope
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.receivers import check_address
from voiceapp.webhooks.sample_delivery import try_once

__all__ = ["EndpointForm", "WebhookEndpointAdmin", "log_admin"]

ADDRESS_HELP = (
    "Events are posted to this address. It must be public, unless WEBHOOK_ALLOWED_NETWORKS names its network."
)
IN_DEVELOPMENT = (
    "Because DEBUG=1, receivers on this machine are allowed too, such as http://localhost:9000/hook; in production "
    "they are refused."
)
TO_SHOW = "webhook_secret_to_show"
"""Session key: of which endpoint, by primary key, the secret may be shown once."""


class EndpointForm(forms.ModelForm):
    """Fields of an endpoint that an operator may edit."""

    address_warning = ""

    url = forms.CharField(
        label="Address",
        max_length=2048,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "url", "placeholder": "https://example.org/hooks"}),
        help_text=ADDRESS_HELP,
    )
    events = forms.MultipleChoiceField(
        choices=[(kind.value, f"{kind}: {MEANINGS[kind]}") for kind in EventKind],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="The events that are delivered to it. They carry identifiers, never what was spoken.",
    )

    class Meta:
        model = WebhookEndpoint
        fields = ("workspace", "url", "description", "events")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        chosen = [kind for kind in self.instance.events if kind in NEVER_HERE]  # by a program
        self.fields["events"].choices += [(kind, f"{kind}: never happens here") for kind in chosen]
        if settings.DEBUG and "url" in self.fields:
            self.fields["url"].help_text = f"{ADDRESS_HELP} {IN_DEVELOPMENT}"

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        try:
            self.address_warning = async_to_sync(check_address)(url)
        except InvalidParameter as refused:
            raise forms.ValidationError(refused.message) from None
        return url


def change_of(operation: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A view for a button of an endpoint's page: POST only, for those who may change it, with refusals as messages."""

    def view(self: WebhookEndpointAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            raise Http404
        if not self.has_change_permission(request, endpoint):
            raise PermissionDenied
        try:
            return operation(self, request, endpoint)
        except RequestRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return self.to_page(endpoint)

    return view


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(OwnRows, ModelAdmin):
    account_path = "workspace__account"
    form = EndpointForm
    list_display = ("url", "state", "disabled_reason", "consecutive_fail", "last_success_at", "workspace", "log")
    list_filter = ("status", "disabled_reason", ("workspace__account", OwnFilter))
    list_select_related = ("workspace__account",)
    search_fields = ("public_id", "url", "description", "workspace__name", "workspace__account__name")
    change_form_template = "admin/webhooks/webhookendpoint/change_form.html"
    facts = (
        "public_id",
        "workspace",
        "state",
        "disabled_reason",
        "consecutive_fail",
        "last_success_at",
        "last_failure_at",
        "created_at",
        "updated_at",
        "old_secret_until",
        "log",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookEndpoint]:
        rows: QuerySet[WebhookEndpoint] = super().get_queryset(request)
        return rows.filter(deleted_at__isnull=True).select_related("workspace")

    @display(description="status", ordering="status", label=LABELS)
    def state(self, row: WebhookEndpoint) -> str:
        return str(row.get_status_display())

    @admin.display(description="log")
    def log(self, row: WebhookEndpoint) -> str:
        address = reverse("admin:webhooks_delivery_changelist")
        return str(format_html('<a href="{}?endpoint={}">deliveries</a>', address, row.public_id))

    def get_fields(self, request: HttpRequest, obj: WebhookEndpoint | None = None) -> tuple[str, ...]:
        if obj is None:
            return EndpointForm.Meta.fields
        return ("url", "description", "events", *self.facts)

    def get_readonly_fields(self, request: HttpRequest, obj: WebhookEndpoint | None = None) -> tuple[str, ...]:
        return () if obj is None else self.facts

    def get_urls(self) -> list[URLPattern]:
        def at(end: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
            return path(f"<path:object_id>/{end}/", self.admin_site.admin_view(view), name=f"webhooks_{name}")

        return [
            at("enable", require_POST(self.enable), "enable"),
            at("disable", require_POST(self.disable), "disable"),
            at("rotate", require_POST(self.rotate), "rotate"),
            at("test", require_POST(self.send_test), "test"),
            at("secret", self.show_secret, "secret"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        endpoint = options.get("obj")
        if endpoint is not None:
            bodies = [(kind, json.loads(sample_envelope(endpoint, kind)[1])) for kind in (TEST_KIND, *EventKind)]
            samples = [(kind, json.dumps(body, indent=2)) for kind, body in bodies]
            context.update(chart=log_admin.health(endpoint), samples=samples)
        page: HttpResponse = super().render_change_form(request, context, *args, **options)
        return page

    def to_page(self, endpoint: WebhookEndpoint) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:webhooks_webhookendpoint_change", args=[endpoint.pk]))

    @change_of
    def enable(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        store.enable(endpoint)
        self.log_change(request, endpoint, "Enabled.")
        self.message_user(request, "Enabled. What happens from now on is delivered.", messages.SUCCESS)
        return self.to_page(endpoint)

    @change_of
    def disable(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        store.disable(endpoint)
        self.log_change(request, endpoint, "Disabled.")
        self.message_user(request, "Disabled. What waited to be delivered was canceled.", messages.SUCCESS)
        return self.to_page(endpoint)

    @change_of
    def rotate(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        store.reset_secret(endpoint, keep_old="keep_old" in request.POST)
        self.log_change(request, endpoint, "Changed the signing secret.")
        return self.to_secret(request, endpoint)

    @change_of
    def send_test(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        if not endpoint.is_called:
            raise store.Conflict("The endpoint is disabled; enable it first.")
        kind = request.POST.get("kind", TEST_KIND)
        if kind not in (TEST_KIND, *EventKind):
            raise Http404
        sample = async_to_sync(try_once)(endpoint, kind)
        sample.keep()
        self.message_user(request, sample.report, messages.SUCCESS if sample.is_good else messages.ERROR)
        return self.to_page(endpoint)

    def to_secret(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        request.session[TO_SHOW] = endpoint.pk
        return HttpResponseRedirect(reverse("admin:webhooks_secret", args=[endpoint.pk]))

    def show_secret(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the secret once; reloading the page shows none."""
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            raise Http404
        if request.session.pop(TO_SHOW, None) != endpoint.pk:
            self.message_user(request, "The secret was shown already. Rotate it to see a new one.", messages.WARNING)
            return self.to_page(endpoint)
        return shown_once(
            self.admin_site,
            request,
            title="Copy this secret now",
            warning="This is the only time the secret is shown. If it gets lost, rotate it.",
            label="Signing secret",
            secret=endpoint.secrets(timezone.now())[0],
            lines=[
                "Put it where your receiver reads its secrets: it verifies the header webhook-signature with it, by "
                "the Standard Webhooks specification.",
                f"For {endpoint.url}",
            ],
            next_url=reverse("admin:webhooks_webhookendpoint_change", args=[endpoint.pk]),
        )

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        one_button = {"show_save_and_continue": False, "show_save_and_add_another": False}
        try:
            return super().add_view(request, form_url, {**(extra_context or {}), **one_button})
        except store.Conflict as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return HttpResponseRedirect(reverse("admin:webhooks_webhookendpoint_changelist"))

    def save_model(self, request: HttpRequest, obj: WebhookEndpoint, form: forms.ModelForm, change: bool) -> None:
        if form.address_warning and "url" in form.changed_data:
            self.message_user(request, form.address_warning, messages.WARNING)
        if change:
            store.update(obj, {name: form.cleaned_data[name] for name in form.changed_data})
            return
        made, _ = store.create(
            form.cleaned_data["workspace"].pk,
            url=form.cleaned_data["url"],
            events=form.cleaned_data["events"],
            description=form.cleaned_data["description"],
        )
        obj.pk, obj.public_id = made.pk, made.public_id

    def response_add(
        self, request: HttpRequest, obj: WebhookEndpoint, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self.to_secret(request, obj)

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        """The log stays as long as events do."""
        store.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        for endpoint in queryset:
            store.delete(endpoint)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Nothing is deleted with it: its deliveries stay in the log."""
        return [str(one.url) for one in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []
