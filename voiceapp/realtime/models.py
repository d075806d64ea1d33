"""Records of conversations: caller, door, duration, latencies and, while kept, the words."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from voiceapp.accounts.models import Account, ApiKey, Workspace
from voiceapp.formats import identifier
from voiceapp.realtime.aoq.models import AoqGrant as AoqGrant
from voiceapp.realtime.aoq.models import AoqRelay as AoqRelay
from voiceapp.realtime.lifetime.processes import NAME_LENGTH


def session_identifier() -> str:
    return identifier("sess")


class TransportKind(models.TextChoices):
    WEBSOCKET = "websocket", "WebSocket"
    WEBRTC = "webrtc", "WebRTC"
    AOQ = "aoq", "AOQ"
    PAGE = "page", "Page"
    """Written by earlier releases, for a WebSocket of the page; see `RealtimeSession.entrance`."""
    RELAYED = "relayed", "WebRTC, relayed"
    """The offer was passed on: sound and words flow between the caller and another service."""


class Entrance(models.TextChoices):
    """Opener of a conversation."""

    PROGRAM = "program", "Program"
    PAGE = "page", "Page"


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
    """Or the name of an agent."""
    agent_version = models.PositiveIntegerField(null=True, blank=True)
    transport = models.CharField(max_length=10, choices=TransportKind.choices)
    entrance = models.CharField(max_length=10, choices=Entrance.choices, null=True, blank=True)
    """None in rows of earlier releases, where it is not known."""
    client_address = models.CharField(max_length=45, blank=True, default="")
    """Internet address of the caller as the proxy rules found it; empty when unknown."""
    served_by = models.CharField(max_length=NAME_LENGTH, blank=True, default="", editable=False)
    """The process that holds the conversation (`processes.own_name`); empty where none of ours does."""
    started_at = models.DateTimeField(default=timezone.now)
    reported_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Time of the caller's last report that they are connected to the service that holds the conversation."""
    ended_at = models.DateTimeField(null=True, blank=True)
    close_code = models.PositiveSmallIntegerField(null=True, blank=True)
    close_reason = models.CharField(max_length=123, blank=True, default="")
    """At most 123 characters: what a WebSocket close frame has room for (RFC 6455, 5.5)."""
    input_audio_ms = models.PositiveBigIntegerField("input audio (ms)", default=0)
    output_audio_ms = models.PositiveBigIntegerField("output audio (ms)", default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    turn_count = models.PositiveIntegerField("turns", default=0)
    quality = models.CharField(max_length=100, blank=True, default="", db_default="")
    """Loss, jitter and round trip, in words; empty where the transport does not know them."""
    watched_until = models.DateTimeField(null=True, blank=True, editable=False)
    """Time until which an operator looks at its page; the process that holds it writes `live_words` meanwhile."""
    live_words = models.JSONField(null=True, blank=True, editable=False)
    """The latest words of the caller and of the reply, while it is open and watched."""

    class Meta:
        verbose_name = "conversation"
        permissions = (("listen_realtimesession", "Can listen in to open conversations"),)
        ordering = ("-started_at",)
        constraints = (
            models.CheckConstraint(
                condition=Q(close_code__isnull=True) | Q(ended_at__isnull=False), name="session_closed_has_ended"
            ),
            models.CheckConstraint(condition=Q(transport__in=TransportKind.values), name="session_transport_known"),
            models.CheckConstraint(
                condition=Q(is_guest=False) | Q(api_key__isnull=True, user__isnull=True), name="session_guest_is_nobody"
            ),
        )
        indexes = (
            models.Index(fields=("-started_at",), name="session_newest_first"),
            models.Index(fields=("account", "-started_at"), name="session_of_account"),
            models.Index(fields=("started_at",), condition=Q(ended_at__isnull=True), name="session_open"),
            models.Index(fields=("watched_until",), condition=Q(ended_at__isnull=True), name="session_watched"),
        )

    def __str__(self) -> str:
        return f"{self.id}"


class ServerProcess(models.Model):
    """A process that may hold conversations. It lives while its lease lasts."""

    name = models.CharField(primary_key=True, max_length=NAME_LENGTH)
    """`processes.own_name`: `served_by` of its conversations."""
    held_since = models.DateTimeField()
    """Time from which on the lease was renewed without a break."""
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}"


class HeldSeat(models.Model):
    """A seat that a server process holds, from a session's admission to its end."""

    id = models.CharField(primary_key=True, max_length=32)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    is_guest = models.BooleanField()
    agent = models.CharField(max_length=60, default="", db_default="")
    """Name of the agent whose seat it is; empty for that of the account."""
    client_address = models.CharField(max_length=45)
    held_by = models.CharField(max_length=NAME_LENGTH)
    """The process (`processes.own_name`)."""
    taken_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.id}"


class Recording(models.Model):
    """The sound and the events of a conversation, a zip file in the storage of tasks.

    It outlives its conversation until its file is deleted, so that no file lies there without a row.
    """

    session = models.OneToOneField(RealtimeSession, on_delete=models.SET_NULL, null=True, related_name="recording")
    name = models.CharField(max_length=100)
    """Name of the file in the storage."""
    size = models.PositiveBigIntegerField()
    began_at = models.DateTimeField(db_index=True)
    """Time of its first sample."""
    sound_bytes = models.PositiveBigIntegerField()
    """Length of its samples."""
    peaks = models.JSONField()
    """The loudest sample in each of equal parts, of 100: a list for the caller, and one for the reply."""
    is_cut = models.BooleanField(default=False)
    """The conversation lasted longer: the recording came to one of its limits."""

    def __str__(self) -> str:
        return f"{self.name}"


class OperatorRequest(models.Model):
    """A request of an operator to an open conversation. The process that holds it takes the request."""

    class Kind(models.TextChoices):
        """Kinds of requests."""

        END = "end"
        MUTE = "mute"
        UNMUTE = "unmute"
        SAY = "say"

    session = models.ForeignKey(RealtimeSession, on_delete=models.CASCADE, related_name="requests")
    kind = models.CharField(max_length=6, choices=Kind.choices)
    words = models.CharField(max_length=300, blank=True, default="")
    """The sentence to say; empty but for `say`."""
    asked_at = models.DateTimeField(default=timezone.now)
    taken_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (models.Index(fields=("id",), condition=Q(taken_at__isnull=True), name="request_open"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.session_id}"


class Turn(models.Model):
    """One response and the turn that it followed.

    The four latencies are marks on one line of time, so each stage took the difference to the mark before it. The line
    begins when the caller's last frame with speech arrived at this server; where `is_spoken` is false, when the request
    for the response arrived. The way to the caller and their playback buffer come on top.
    """

    class Status(models.TextChoices):
        """End of the response, in the wire's words."""

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
    """Part of the reply that was heard before an interruption; all three texts are blank once words are not kept."""
    status = models.CharField(max_length=10, choices=Status.choices)
    interrupted = models.BooleanField(default=False)
    input_audio_ms = models.PositiveIntegerField("input audio (ms)", default=0)
    output_audio_ms = models.PositiveIntegerField("output audio (ms)", default=0)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    is_spoken = models.BooleanField(
        "spoken",
        default=False,
        db_default=False,  # a process of the release before writes turns without it
        help_text="Whether the turn was spoken. Only then is first audio the voice to voice time.",
    )
    end_of_turn_ms = models.PositiveIntegerField(
        "end of turn (ms)",
        null=True,
        blank=True,
        help_text="From the arrival of the caller's last speech to the decision that the turn is over.",
    )
    recognition_ms = models.PositiveIntegerField(
        "recognition (ms)",
        null=True,
        blank=True,
        help_text="From the arrival of the caller's last speech until the turn was over and its words were known.",
    )
    first_token_ms = models.PositiveIntegerField(
        "first token (ms)",
        null=True,
        blank=True,
        help_text="From the arrival of the caller's last speech, or of the request, until the first words came.",
    )
    first_audio_ms = models.PositiveIntegerField(
        "first audio (ms)",
        null=True,
        blank=True,
        help_text="From the arrival of the caller's last speech, or of the request, until the first audio was sent.",
    )

    served_by = models.CharField(
        max_length=NAME_LENGTH,
        blank=True,
        default="",
        db_default="",  # a process of the release before writes turns without it
        help_text="The service and the model that replied, where one of several could.",
    )

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
