"""The log of deliveries in the operators' site: to follow, and to send again."""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Avg, Count, Q, QuerySet
from django.db.models.functions import TruncHour
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import localize
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.text import Truncator
from django.views.decorators.http import require_POST
from unfold.decorators import display

from voiceapp.accounts.own_rows import OwnRows, own
from voiceapp.formats import duration
from voiceapp.http.admin import LABELS, ReadOnlyInline, RecordsAdmin, choice_filter, column
from voiceapp.http.charts import Chart, chart
from voiceapp.webhooks import store
from voiceapp.webhooks.events import MEANINGS, TEST_KIND, EventKind
from voiceapp.webhooks.models import Attempt, Delivery, WebhookEndpoint
from voiceapp.webhooks.states import FINAL, WAITING

MOST_DRAWN = 2000
"""Deliveries of an endpoint whose attempts its chart counts."""
MOST_LISTED = 20
"""Endpoints that the log offers to be narrowed to; there may be thousands, which a search finds."""


class AttemptInline(ReadOnlyInline):
    model = Attempt
    fields = ("at", "status_code", "duration_ms", "answer")
    readonly_fields = fields
    verbose_name_plural = "attempts"

    @admin.display(description="response, or why none came")
    def answer(self, row: Attempt) -> str:
        return row.error or str(row.answer_start)


KindFilter = choice_filter(
    "kind",
    {
        **{kind.value: (f"{kind}: {MEANINGS[kind]}", Q(event__kind=kind)) for kind in EventKind},
        TEST_KIND: (f"{TEST_KIND}: a test delivery", Q(event__kind=TEST_KIND)),
    },
)


class EndpointFilter(admin.SimpleListFilter):
    """The newest endpoints, and the one at hand, by what people call them."""

    title = "endpoint"
    parameter_name = "endpoint"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        endpoints = own(WebhookEndpoint.objects.all(), request.user, "workspace__account")
        rows = endpoints.only("public_id", "description", "url")
        newest = list(rows.order_by("-pk")[:MOST_LISTED])
        chosen = rows.filter(public_id=self.value()).exclude(pk__in=[row.pk for row in newest])
        return [(row.public_id, self._name(row)) for row in (*chosen, *newest)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> QuerySet[Delivery]:
        return queryset.filter(endpoint__public_id=self.value()) if self.value() else queryset

    @staticmethod
    def _name(row: WebhookEndpoint) -> str:
        return str(Truncator(row.description or row.url.partition("://")[2]).chars(40))


@admin.register(Delivery)
class DeliveryAdmin(OwnRows, RecordsAdmin):
    """The log: which event went to which endpoint, how often it was tried, and what came back."""

    account_path = "endpoint__workspace__account"
    list_display = ("happened", "state", "kind", "calls", "failure_reason", "address")
    list_filter = ("status", KindFilter, "is_replay", EndpointFilter, ("event__created_at", admin.DateFieldListFilter))
    list_select_related = ("event", "endpoint")
    search_fields = ("event__public_id", "endpoint__public_id", "endpoint__url", "event__body")
    inlines = (AttemptInline,)
    actions = ("send_again",)
    fields = (
        "happened",
        "kind",
        "identifier",
        "address",
        "state",
        "calls",
        "next_attempt",
        "delivery_at",
        "finish_at",
        "failure_reason",
        "is_replay",
        "body",
        "curl",
    )
    change_form_template = "admin/webhooks/delivery/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return store.with_calls(super().get_queryset(request))

    def get_fields(self, request: HttpRequest, obj: Delivery | None = None) -> tuple[str, ...]:
        is_waiting = obj is None or obj.status in WAITING
        return tuple(name for name in self.fields if name != "next_attempt" or is_waiting)

    @admin.display(description="happened", ordering="event__created_at")
    def happened(self, row: Delivery) -> str:
        return str(localize(timezone.localtime(row.event.created_at)))

    @admin.display(description="next attempt")
    def next_attempt(self, row: Delivery) -> str:
        waits = settings.WEBHOOK_RETRY_SCHEDULE
        when, left = localize(timezone.localtime(row.due_at)), sum(waits[row.attempts :])
        last = f"; given up about {duration(left)} later" if left else ""
        return f"{when}, number {row.attempts + 1} of {len(waits) + 1}{last}"

    @display(description="status", ordering="status", label=LABELS)
    def state(self, row: Delivery) -> str:
        return str(row.get_status_display())

    @admin.display(description="kind", ordering="event__kind")
    def kind(self, row: Delivery) -> str:
        parts = re.split(r"(?<=[._])", row.event.kind)
        return str(format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts)))

    identifier = column("event.public_id", "webhook-id")
    address = column("endpoint.url", "endpoint", ordering="endpoint")
    calls = column("calls", "attempts")

    @admin.display(description="body")
    def body(self, row: Delivery) -> str:
        return str(format_html("<pre>{}</pre>", json.dumps(json.loads(row.event.body), indent=2, ensure_ascii=False)))

    @admin.display(description="as curl, unsigned")
    def curl(self, row: Delivery) -> str:
        """A command that sends the same event by hand."""
        headers = {"content-type": "application/json", "webhook-id": row.event.public_id}
        options = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
        return str(
            format_html(
                "<pre>{}</pre>",
                " \\\n  ".join(
                    [f"curl {shlex.quote(row.endpoint.url)}", *options, f"--data {shlex.quote(row.event.body)}"]
                ),
            )
        )

    def get_urls(self) -> list[URLPattern]:
        again = self.admin_site.admin_view(require_POST(self.replay))
        return [path("<path:object_id>/replay/", again, name="webhooks_replay"), *super().get_urls()]

    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
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
        return bool(request.user.has_perm("webhooks.change_delivery"))

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any) -> Any:
        row: Delivery = context["original"]
        may = row.status in FINAL and row.endpoint.is_called and self.has_send_permission(request)
        return super().render_change_form(request, {**context, "may_send_again": may}, *args, **options)


def health(endpoint: WebhookEndpoint) -> Chart:
    """Draw the attempts of the last day by hour, those of the endpoint's latest deliveries."""
    first = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)
    latest = Delivery.objects.filter(endpoint=endpoint).order_by("-pk").values("pk")[:MOST_DRAWN]
    failed = Count("pk", filter=Q(status_code__isnull=True) | ~Q(status_code__range=(200, 299)))
    found = {
        row["hour"]: (row["count"], row["failed"], row["mean"])
        for row in Attempt.objects.filter(delivery__in=list(latest.values_list("pk", flat=True)), at__gte=first)
        .order_by()
        .annotate(hour=TruncHour("at"))
        .values("hour")
        .annotate(count=Count("pk"), failed=failed, mean=Avg("duration_ms"))
    }
    points = []
    for hour in (first + timedelta(hours=place) for place in range(24)):
        count, bad, mean = found.get(hour, (0, 0, 0))
        cells = [f"{count} attempts", f"{bad} failed", f"{mean:.0f} ms"]
        points.append((timezone.localtime(hour).strftime("%H:%M"), count, bad, cells))
    return chart("Attempts of the last day", "hour", ["Attempts", "Failed", "Mean time"], points)
