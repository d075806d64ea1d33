"""What remains of a conversation: who talked, through which door, how long, how fast and, while kept, the words."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts.models import Account, ApiKey, Workspace
from voiceapp.formats import identifier
from voiceapp.realtime.processes import NAME_LENGTH


def session_identifier() -> str:
    return identifier("sess")


class Door(models.TextChoices):
    """The transport a voice came through."""

    WEBSOCKET = "websocket", "WebSocket"
    WEBRTC = "webrtc", "WebRTC"
    AOQ = "aoq", "AOQ"
    PAGE = "page", "Page"
    RELAYED = "relayed", "WebRTC, relayed"
    """The offer was passed on: sound and words flow between the caller and a service elsewhere."""


class RealtimeSession(models.Model):
    """One conversation. Open while `ended_at` is empty; the counters are final only after that."""

    id = models.CharField(primary_key=True, max_length=40, default=session_identifier, editable=False)
    """The wire's session id, `sess_…`."""
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="sessions", db_index=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sessions")
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, blank=True, related_name="sessions", verbose_name="API key"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    is_guest = models.BooleanField("guest", default=False)
    model = models.CharField(max_length=100)
    transport = models.CharField(max_length=10, choices=Door.choices)
    client_address = models.CharField(max_length=45, blank=True, default="")
    """Internet address of the caller as the proxy rules found it; empty when unknown."""
    served_by = models.CharField(max_length=NAME_LENGTH, blank=True, default="", editable=False)
    """The process that holds the conversation (`processes.own_name`); empty where none of ours does."""
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    close_code = models.PositiveSmallIntegerField(null=True, blank=True)
    close_reason = models.CharField(max_length=123, blank=True, default="")
    """At most 123 characters: what a WebSocket close frame has room for (RFC 6455, 5.5)."""
    input_audio_ms = models.PositiveBigIntegerField("input audio (ms)", default=0)
    output_audio_ms = models.PositiveBigIntegerField("output audio (ms)", default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    turn_count = models.PositiveIntegerField("turns", default=0)

    class Meta:
        verbose_name = "conversation"
        ordering = ("-started_at",)
        constraints = (
            models.CheckConstraint(
                condition=Q(close_code__isnull=True) | Q(ended_at__isnull=False), name="session_closed_has_ended"
            ),
            models.CheckConstraint(condition=Q(transport__in=Door.values), name="session_transport_known"),
            models.CheckConstraint(
                condition=Q(is_guest=False) | Q(api_key__isnull=True, user__isnull=True), name="session_guest_is_nobody"
            ),
        )
        indexes = (
            models.Index(fields=("-started_at",), name="session_newest_first"),
            models.Index(fields=("account", "-started_at"), name="session_of_account"),
            models.Index(fields=("started_at",), condition=Q(ended_at__isnull=True), name="session_open"),
        )

    def __str__(self) -> str:
        return f"{self.id}"


class Turn(models.Model):
    """One answer and what it answered. Latencies count from the last sample of the caller's speech."""

    class Status(models.TextChoices):
        """How the response ended, in the wire's words."""

        COMPLETED = "completed"
        CANCELLED = "cancelled"
        FAILED = "failed"
        INCOMPLETE = "incomplete"

    session = models.ForeignKey(RealtimeSession, on_delete=models.CASCADE, related_name="turns", db_index=False)
    ordinal = models.PositiveIntegerField()
    """Position in the conversation, from 1."""
    started_at = models.DateTimeField(default=timezone.now)
    user_text = models.TextField(blank=True, default="")
    assistant_text = models.TextField(blank=True, default="")
    heard_text = models.TextField(blank=True, default="")
    """What of the answer was heard, when it was interrupted; all three texts are blank once words are not kept."""
    status = models.CharField(max_length=10, choices=Status.choices)
    interrupted = models.BooleanField(default=False)
    input_audio_ms = models.PositiveIntegerField("input audio (ms)", default=0)
    output_audio_ms = models.PositiveIntegerField("output audio (ms)", default=0)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    end_of_turn_ms = models.PositiveIntegerField("end of turn (ms)", null=True, blank=True)
    recognition_ms = models.PositiveIntegerField("recognition (ms)", null=True, blank=True)
    first_token_ms = models.PositiveIntegerField("first token (ms)", null=True, blank=True)
    first_audio_ms = models.PositiveIntegerField("voice to voice (ms)", null=True, blank=True)
    """From the last sample of speech to the first of the answer; empty when the turn was not spoken or not answered."""

    class Meta:
        ordering = ("session", "ordinal")
        constraints = (
            models.UniqueConstraint(fields=("session", "ordinal"), name="turn_ordinal_once_per_session"),
            models.CheckConstraint(condition=Q(ordinal__gte=1), name="turn_ordinal_from_one"),
            models.CheckConstraint(
                condition=Q(status__in=("completed", "cancelled", "failed", "incomplete")), name="turn_status_known"
            ),
            models.CheckConstraint(condition=Q(heard_text="") | Q(interrupted=True), name="turn_heard_if_interrupted"),
        )
        indexes = (models.Index(fields=("started_at",), name="turn_oldest_first"),)

    def __str__(self) -> str:
        return f"{self.session_id} #{self.ordinal}"
