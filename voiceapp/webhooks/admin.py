"""Webhook endpoints in the operators' site, and the log of what they were told.

A signing secret is shown once, by the page that follows its making; what may be shown is remembered in the session, the
secret itself is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from voiceapp.errors import InvalidParameter, RequestRefused
from voiceapp.outbound import check_receiver
from voiceapp.webhooks import store
from voiceapp.webhooks.events import Kind
from voiceapp.webhooks.models import DELIVERED, Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.trial import holes, try_once

TO_SHOW = "webhook_secret_to_show"
"""Session key: of which endpoint, by primary key, the secret may be shown once."""
MOST_LISTED = 20
"""Endpoints that the log offers to be narrowed to; there may be thousands, which a search finds."""


def to_the_second(at: datetime | None) -> str | None:
    """A time for people; attempts of one minute are told apart."""
    return None if at is None else timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S")


class EndpointForm(forms.ModelForm):
    """What somebody decides about an endpoint."""

    url = forms.CharField(
        label="Address",
        max_length=2048,
        widget=forms.URLInput(attrs={"size": 80, "placeholder": "https://example.org/hooks"}),
        help_text="Events are posted here. It must be public, unless WEBHOOK_ALLOWED_NETWORKS names its network.",
    )
    events = forms.MultipleChoiceField(
        choices=[(kind.value, kind.value) for kind in Kind],
        widget=forms.CheckboxSelectMultiple,
        help_text="What it is told of.",
    )

    class Meta:
        model = WebhookEndpoint
        fields = ("workspace", "url", "description", "events")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        try:
            async_to_sync(check_receiver)(url, holes())
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
class WebhookEndpointAdmin(admin.ModelAdmin):
    form = EndpointForm
    add_form_template = "admin/webhooks/webhookendpoint/change_form.html"
    list_display = ("url", "state", "consecutive_fail", "last_success_at", "workspace", "log")
    list_filter = ("status", "disabled_reason", "workspace__account")
    list_select_related = ("workspace__account",)
    search_fields = ("public_id", "url", "description", "workspace__name", "workspace__account__name")
    change_form_template = "admin/webhooks/webhookendpoint/change_form.html"
    facts = (
        "public_id",
        "workspace",
        "status",
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

    @admin.display(description="status", ordering="status")
    def state(self, row: WebhookEndpoint) -> str:
        """With the reason, where it is told nothing."""
        reason = row.get_disabled_reason_display()
        return f"{row.get_status_display()}: {reason}" if reason else str(row.get_status_display())

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
        trial = async_to_sync(try_once)(endpoint)
        self.message_user(request, trial.report, messages.SUCCESS if trial.is_good else messages.ERROR)
        return self.to_page(endpoint)

    def to_secret(self, request: HttpRequest, endpoint: WebhookEndpoint) -> HttpResponse:
        request.session[TO_SHOW] = endpoint.pk
        return HttpResponseRedirect(reverse("admin:webhooks_secret", args=[endpoint.pk]))

    def show_secret(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The only page that ever holds the secret; nothing may keep it, and reloading it shows none."""
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            raise Http404
        if request.session.pop(TO_SHOW, None) != endpoint.pk:
            self.message_user(request, "The secret was shown already. Rotate it to see a new one.", messages.WARNING)
            return self.to_page(endpoint)
        context = {
            **self.admin_site.each_context(request),
            "title": "Copy this secret now",
            "opts": self.opts,
            "endpoint": endpoint,
            "secret": endpoint.secrets(timezone.now())[0],
        }
        page = TemplateResponse(request, "admin/webhooks/webhookendpoint/secret.html", context)
        page.headers["Cache-Control"] = "no-store"
        return page

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
        """Nothing goes with it: what it was told stays in the log."""
        return [str(one.url) for one in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []


class AttemptInline(admin.TabularInline):
    model = Attempt
    fields = ("began", "status_code", "duration_ms", "answer")
    readonly_fields = fields
    can_delete = False
    verbose_name_plural = "attempts"

    @admin.display(description="at")
    def began(self, row: Attempt) -> str | None:
        return to_the_second(row.at)

    @admin.display(description="answer, or why there was none")
    def answer(self, row: Attempt) -> str:
        return row.error or str(row.answer_start)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class EndpointFilter(admin.SimpleListFilter):
    """The newest endpoints, and the one at hand, by what people call them."""

    title = "endpoint"
    parameter_name = "endpoint"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = WebhookEndpoint.objects.only("public_id", "description", "url")
        newest = list(rows.order_by("-pk")[:MOST_LISTED])
        chosen = rows.filter(public_id=self.value()).exclude(pk__in=[row.pk for row in newest])
        return [(row.public_id, self._name(row)) for row in (*chosen, *newest)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> QuerySet[Delivery]:
        return queryset.filter(endpoint__public_id=self.value()) if self.value() else queryset

    @staticmethod
    def _name(row: WebhookEndpoint) -> str:
        return str(Truncator(row.description or row.url.partition("://")[2]).chars(40))


@admin.register(Delivery)
class DeliveryAdmin(admin.ModelAdmin):
    """The log: what was told whom, how often it was tried, and what came back."""

    list_display = ("happened", "status", "kind", "calls", "failure_reason", "address")
    list_filter = ("status", "event__kind", "is_replay", EndpointFilter)
    list_select_related = ("event", "endpoint")
    search_fields = ("event__public_id", "endpoint__public_id", "endpoint__url", "event__body")
    date_hierarchy = "event__created_at"
    show_full_result_count = False
    inlines = (AttemptInline,)
    actions = ("send_again",)
    fields = (
        "happened",
        "kind",
        "identifier",
        "address",
        "status",
        "calls",
        "due",
        "tried",
        "finished",
        "failure_reason",
        "is_replay",
        "body",
    )
    change_form_template = "admin/webhooks/delivery/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return store.with_calls(super().get_queryset(request))

    def get_fields(self, request: HttpRequest, obj: Delivery | None = None) -> tuple[str, ...]:
        is_waiting = obj is None or obj.status in Delivery.WAITING
        return tuple(name for name in self.fields if name != "due" or is_waiting)

    @admin.display(description="happened", ordering="event__created_at")
    def happened(self, row: Delivery) -> str | None:
        return to_the_second(row.event.created_at)

    @admin.display(description="kind", ordering="event__kind")
    def kind(self, row: Delivery) -> str:
        parts = re.split(r"(?<=[._])", row.event.kind)
        return str(format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts)))

    @admin.display(description="webhook-id")
    def identifier(self, row: Delivery) -> str:
        return str(row.event.public_id)

    @admin.display(description="endpoint", ordering="endpoint")
    def address(self, row: Delivery) -> str:
        return str(row.endpoint.url)

    @admin.display(description="attempts")
    def calls(self, row: Delivery) -> int:
        return int(row.calls)

    @admin.display(description="due")
    def due(self, row: Delivery) -> str | None:
        return to_the_second(row.due_at)

    @admin.display(description="last tried")
    def tried(self, row: Delivery) -> str | None:
        return to_the_second(row.delivery_at)

    @admin.display(description="finished")
    def finished(self, row: Delivery) -> str | None:
        return to_the_second(row.finish_at)

    @admin.display(description="body")
    def body(self, row: Delivery) -> str:
        return str(row.event.body)

    def get_urls(self) -> list[URLPattern]:
        again = self.admin_site.admin_view(require_POST(self.replay))
        return [path("<path:object_id>/replay/", again, name="webhooks_replay"), *super().get_urls()]

    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The button on a delivery's page."""
        delivery = self.get_object(request, unquote(object_id))
        if delivery is None:
            raise Http404
        if not self.has_send_permission(request):
            raise PermissionDenied
        self._send_again(request, Delivery.objects.filter(pk=delivery.pk))
        return HttpResponseRedirect(reverse("admin:webhooks_delivery_change", args=[delivery.pk]))

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        self._send_again(request, queryset)

    def _send_again(self, request: HttpRequest, rows: QuerySet[Delivery]) -> None:
        asked, sent = rows.count(), store.resend(rows)
        left = asked - sent
        why = f" {left} were left alone: on their way still, or their endpoint is not active." if left else ""
        self.message_user(request, f"{sent} on the way again.{why}", messages.SUCCESS if sent else messages.WARNING)

    def has_send_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_change_permission(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        return False

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any) -> Any:
        row: Delivery = context["original"]
        may = row.status in DELIVERED and row.endpoint.is_called and self.has_send_permission(request)
        return super().render_change_form(request, {**context, "may_send_again": may}, *args, **options)
