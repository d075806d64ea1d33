"""Conversations in the operators' site: to look at and, once over, to delete; never to edit."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.decorators import display

from voiceapp.accounts.own_rows import OwnFilter, OwnRows
from voiceapp.catalogue.defaults import VOICE
from voiceapp.catalogue.lookup import catalogue
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import NotFound
from voiceapp.formats import duration
from voiceapp.http.admin import LABELS, LiveAdmin, ReadOnlyInline, choice_filter, column
from voiceapp.protocol.audio import WAV_HEADER_BYTES
from voiceapp.realtime.close_codes import MEANINGS, in_words
from voiceapp.realtime.listening_in import LISTEN_IN, listened
from voiceapp.realtime.models import OperatorRequest, RealtimeSession, Recording, TransportKind, Turn
from voiceapp.realtime.records.export import FORMATS, captions, usage
from voiceapp.realtime.records.recording import PEAKS, SOUND, opened
from voiceapp.realtime.records.sound import RATE_HZ
from voiceapp.realtime.retention import delete_conversations
from voiceapp.tasks.storage.file_api import served

MOST_WORDS = 300
"""Characters of a sentence that an operator has said."""
WATCHED = timedelta(seconds=10)
"""Time for which the words of a conversation are told after its page has looked."""
DELETING = "admin/realtime/realtimesession/delete_of_accounts.html"
PLAY = "realtime.view_recording"
HEARD = "Fetched the recording."
MIDDLE = 50
"""Height of one side of a waveform."""


StateFilter = choice_filter(
    "state", {"open": ("Open", Q(ended_at=None)), "closed": ("Closed", Q(ended_at__isnull=False))}
)


EndFilter = choice_filter("end", {str(code): (in_words(code), Q(close_code=code)) for code in MEANINGS})


class TurnInline(ReadOnlyInline):
    model = Turn
    verbose_name_plural = "turns"
    fields = (
        "started_at",
        "user_text",
        "assistant_text",
        "heard_text",
        "status",
        "interrupted",
        "counted_from",
        "end_of_turn",
        "recognition",
        "first_word",
        "first_sound",
        "written_by",
    )
    readonly_fields = fields
    ordering = ("ordinal",)
    template = "admin/realtime/realtimesession/turns.html"

    @admin.display(description="counted from")
    def counted_from(self, row: Turn) -> str:
        return "last sound of speech" if row.is_spoken else "request"

    # Named as the page and its export name the stages of a reply.

    written_by = column("served_by", "written by")
    end_of_turn = column("end_of_turn_ms", "end of turn (ms)")
    recognition = column("recognition_ms", "recognition (ms)")
    first_word = column("first_token_ms", "first word (ms)")
    first_sound = column("first_audio_ms", "first sound (ms)")


@admin.register(RealtimeSession)
class RealtimeSessionAdmin(OwnRows, LiveAdmin):
    list_display = (
        "started_at",
        "account",
        "caller",
        "entrance",
        "transport",
        "model",
        "agent",
        "lasted",
        "turn_count",
        "end",
    )
    list_filter = (
        StateFilter,
        ("account", OwnFilter),
        "entrance",
        "transport",
        "is_guest",
        "model",
        EndFilter,
        "started_at",
    )
    list_select_related = ()
    search_fields = ("id__startswith", "client_address__startswith")
    inlines = (TurnInline,)
    change_form_template = "admin/realtime/realtimesession/change_form.html"
    fields = (
        "id",
        "account",
        "workspace",
        "caller",
        "model",
        "agent",
        "entrance",
        "transport",
        "client_address",
        "started_at",
        "ended_at",
        "lasted",
        "end",
        "close_reason",
        "input_audio_ms",
        "output_audio_ms",
        "input_tokens",
        "output_tokens",
        "turn_count",
        "quality",
        "used",
    )
    actions = ("delete_of_accounts",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[RealtimeSession]:
        related = ("account", "api_key", "user")
        return super().get_queryset(request).prefetch_related(*related)  # joins make SQLite sort all rows

    def state(self, rows: QuerySet[RealtimeSession], row: str) -> list[tuple[Any, ...]]:
        """Conversations that are open, or the one that is named, with their turns."""
        shown = rows.filter(pk=row) if row else rows.filter(ended_at__isnull=True).order_by("started_at")
        if row:
            now = timezone.now()
            idle = RealtimeSession.objects.filter(pk__in=shown.values("pk"), ended_at=None)
            idle.exclude(watched_until__gt=now + WATCHED / 2).update(watched_until=now + WATCHED)
        return list(shown.values_list("pk", "ended_at", Count("turns"), "recording", "live_words"))

    def get_urls(self) -> list[URLPattern]:
        export, ask = self.admin_site.admin_view(self.export), self.admin_site.admin_view(require_POST(self.ask))
        return [
            path("<path:object_id>/export.<slug:form>", export, name="realtime_export"),
            path("<path:object_id>/ask/", ask, name="realtime_ask"),
            path("<path:object_id>/listen/", require_POST(self.listen), name="realtime_listen"),
            path("<path:object_id>/recording.<slug:form>", self.recorded, name="realtime_recording"),
            *super().get_urls(),
        ]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], **options: Any) -> HttpResponse:
        row = options.get("obj")
        recording = Recording.objects.filter(session=row).first() if row else None
        if recording is not None and request.user.has_perm(PLAY):
            context.update(recording=recording, **_drawn(recording))
        if settings.MAX_LISTENERS and row and row.ended_at is None:
            context["may_listen"] = request.user.has_perm(LISTEN_IN)
        page: HttpResponse = super().render_change_form(request, context, **options)
        return page

    def ask(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask something of an open conversation: its end, silence, or to say a sentence."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not request.user.has_perm("realtime.change_realtimesession"):
            raise PermissionDenied
        kind, words = request.POST.get("kind", ""), request.POST.get("words", "").strip()
        if kind not in OperatorRequest.Kind.values or (kind == "say" and not 0 < len(words) <= MOST_WORDS):
            self.message_user(request, f"Write a sentence of at most {MOST_WORDS} characters.", messages.ERROR)
        elif row.ended_at is not None or not row.served_by:
            self.message_user(request, "This conversation is over, or another service holds it.", messages.WARNING)
        else:
            row.requests.create(kind=kind, words=words if kind == "say" else "")
            self.log_change(request, row, f"Asked: {kind} {words}".strip())
            self.message_user(request, "Asked. It happens within two seconds.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:realtime_realtimesession_change", args=[quote(row.pk)]))

    def export(self, request: HttpRequest, object_id: str, form: str) -> HttpResponse:
        """Download a conversation in one of the forms of `export.FORMATS`."""
        row = self.get_object(request, unquote(object_id))
        if row is None or form not in FORMATS:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        media_type, write = FORMATS[form]
        response = HttpResponse(write(row), content_type=f"{media_type}; charset=utf-8")
        response.headers["Content-Disposition"] = f'attachment; filename="{row.pk}.{form}"'
        response.headers["Cache-Control"] = "no-store"
        return response

    async def recorded(self, request: HttpRequest, object_id: str, form: str) -> HttpResponseBase:
        """Return a recording: as `zip` with its events, or its sound alone as `wav`, to be played."""
        user = await request.auser()
        if not (user.is_staff and await user.ahas_perm(PLAY)):
            raise PermissionDenied

        def find() -> Recording | None:
            shown = self.get_queryset(request).filter(pk=unquote(object_id))
            found: Recording | None = Recording.objects.filter(session__in=shown.values("pk")).first()
            known = LogEntry.objects.filter(user=user, object_id=unquote(object_id), change_message=HEARD)
            if found is not None and not known.exists():  # a player asks for many parts
                self.log_change(request, found.session, HEARD)
            return found

        row = await run_in_db_thread(find)
        if row is None or form not in ("zip", "wav"):
            raise Http404
        part, size = (SOUND, WAV_HEADER_BYTES + row.sound_bytes) if form == "wav" else ("", row.size)
        headers = {
            "Content-Type": "audio/wav" if part else "application/zip",
            "Content-Disposition": f'attachment; filename="{unquote(object_id)}.{form}"',
            "Cache-Control": "no-store",
        }
        try:
            return await served(request, size, partial(opened, row, part), headers)
        except NotFound as gone:
            raise Http404 from gone

    async def listen(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Stream the sound of an open conversation; see `listened`."""
        find = partial(self.get_object, request, unquote(object_id))
        return await listened(request, find, partial(self.log_change, request))

    @admin.display(description="caller")
    def caller(self, row: RealtimeSession) -> str:
        if row.is_guest:
            return "guest"
        if row.api_key is not None:
            return f"key {row.api_key.name}"
        return str(row.user or "a deleted key or login")

    @admin.display(description="agent")
    def agent(self, row: RealtimeSession) -> str:
        if row.agent_version is None:
            return ""
        name = row.model
        is_default = catalogue().find(name, "realtime") is not None
        return f"{VOICE if is_default else name.partition('@')[0]}@{row.agent_version}"

    @admin.display(description="cost and usage")
    def used(self, row: RealtimeSession) -> str:
        return usage(row)

    @admin.display(description="duration")
    def lasted(self, row: RealtimeSession) -> str:
        if row.transport == TransportKind.RELAYED:
            return "known to the other service only"
        seconds = max(0.0, ((row.ended_at or timezone.now()) - row.started_at).total_seconds())
        return duration(seconds) if row.ended_at else f"{duration(seconds)} so far"

    @display(description="end", ordering="close_code", label=LABELS)
    def end(self, row: RealtimeSession) -> str:
        if row.ended_at is None:
            return "open"
        return in_words(row.close_code, row.close_reason) or row.close_reason

    def has_delete_permission(self, request: HttpRequest, obj: RealtimeSession | None = None) -> bool:
        """An open conversation still writes to its row."""
        is_open = obj is not None and obj.ended_at is None
        return bool(super().has_delete_permission(request, obj)) and not is_open

    def delete_model(self, request: HttpRequest, obj: RealtimeSession) -> None:
        delete_conversations(RealtimeSession.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[RealtimeSession]) -> None:
        delete_conversations(queryset)

    @admin.action(description="Delete all conversations of the accounts of these", permissions=["delete"])
    def delete_of_accounts(self, request: HttpRequest, queryset: QuerySet[RealtimeSession]) -> HttpResponse | None:
        """Delete, once confirmed, what is over of every account that is among the chosen rows."""
        over = self.get_queryset(request).filter(ended_at__isnull=False).order_by()
        accounts = {row.account for row in queryset.select_related("account")}
        counted = [(account, over.filter(account=account).count()) for account in accounts]
        if "confirmed" not in request.POST:
            context = {"title": "Delete all conversations?", "counted": counted, "chosen": queryset}
            return TemplateResponse(request, DELETING, {**self.admin_site.each_context(request), **context})
        for account, _ in counted:
            deleted = delete_conversations(over.filter(account=account))
            self.log_change(request, account, f"Deleted conversations: {deleted}.")
            self.message_user(request, f"Deleted {deleted} conversations of {account}.", messages.SUCCESS)
        return None


def _drawn(recording: Recording) -> dict[str, Any]:
    """The waveform, a bar for each peak: the caller's above the middle line, the reply's below it. And the captions."""
    bars = [
        "".join(f"M{place}.5 {MIDDLE}v{direction * peak * MIDDLE // 100}" for place, peak in enumerate(peaks) if peak)
        for peaks, direction in zip(recording.peaks, (-1, 1), strict=True)
    ]
    before_s = (recording.began_at - recording.session.started_at).total_seconds()
    spoken = [
        {
            "begins": max(0.0, round(said.begins.total_seconds() - before_s, 1)),
            "ends": round(said.ends.total_seconds() - before_s, 1),
            "speaker": said.speaker,
            "text": said.text,
        }
        for said in captions(recording.session)
    ]
    return {
        "caller_bars": bars[0],
        "reply_bars": bars[1],
        "bars": PEAKS,
        "height": 2 * MIDDLE,
        "length_s": recording.sound_bytes / (4 * RATE_HZ),
        "captions": spoken,
    }
