"""Agents, their drafts and their published versions."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.utils import timezone

from voiceapp.catalogue.defaults import HUB_NAME, VOICE
from voiceapp.catalogue.lookup import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.outbound.addresses import check_url
from voiceapp.outbound.model_servers import check_model_server
from voiceapp.protocol.configuration import SessionConfig, merge
from voiceapp.sealing import seal, unseal

FIXABLE = (
    *("voice", "transcription_language", "terms", "turn_detection", "temperature", "max_tokens"),
    *("instructions", "tools"),
)
"""Settings of a session that an agent may keep from its callers."""

MAX_NAME_BYTES = 255
"""Longest name of a file or folder in Linux."""


class Mind(models.TextChoices):
    """The writer of an agent's replies."""

    SERVER = "server", "as this server is set up"
    SKILLS = "skills", "skills and documents only"
    ADDRESS = "address", "a model at an address"
    FILE = "file", "a GGUF model that runs here"


class TurnPatience(models.TextChoices):
    """Silence of the caller after which a turn has ended."""

    CALM = "calm"
    NORMAL = "normal"
    QUICK = "quick"


SILENCE_MS: dict[str, int] = {TurnPatience.CALM: 1500, TurnPatience.QUICK: 400}
"""Silence that ends a turn; the turn model decides where nothing stands here."""


class Composition(models.Model):
    """All that an operator composes of an agent."""

    title = models.CharField(max_length=100, blank=True, help_text="Name that people see.")
    is_public = models.BooleanField("public", default=False, help_text="Guests may talk to it without a login.")
    instructions = models.TextField(
        blank=True,
        max_length=50_000,
        help_text="What a language model is told before the caller's own instructions. {{name}} stands for a variable "
        "that callers give.",
    )
    first_words = models.TextField(blank=True, max_length=500, help_text="Said as a conversation begins.")
    voice = models.CharField(max_length=64, blank=True, help_text="Empty: the server's usual voice.")
    pace = models.FloatField(default=1.0, validators=[MinValueValidator(0.5), MaxValueValidator(2.0)])
    language = models.CharField(max_length=16, blank=True, help_text="Such as en; empty: as it is heard.")
    terms = models.TextField("words to hear right", blank=True, max_length=5_000, help_text="One on a line.")
    patience = models.CharField(max_length=10, choices=TurnPatience.choices, default=TurnPatience.NORMAL)
    mind = models.CharField(max_length=10, choices=Mind.choices, default=Mind.SERVER)
    address = models.CharField(max_length=500, blank=True, help_text="Such as http://127.0.0.1:11434/v1.")
    model = models.CharField(max_length=200, blank=True, help_text="The model's name there.")
    file = models.CharField(
        max_length=500, blank=True, help_text="A path, an https address, or hf:owner/repository:Q4_K_M."
    )
    fallbacks = models.CharField(
        max_length=200, blank=True, help_text="Models of this server that are asked in turn when that one cannot serve."
    )
    documents = models.CharField(max_length=32, blank=True, default="", db_default="", editable=False)
    """Digest of its `DocumentSet`; empty: it replies from the server's documents."""
    tools = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text="Of the servers in MCP_SERVERS, such as house or house/lights_on, with commas between. Empty: those "
        "that are offered in every conversation.",
    )
    forbidden = models.TextField(
        "words it neither takes nor gives",
        blank=True,
        default="",
        db_default="",
        max_length=5_000,
        help_text="Words and phrases, one on a line, beside those that this server forbids.",
    )
    temperature = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.0), MaxValueValidator(1.99)])
    max_tokens = models.PositiveIntegerField(
        "reply length", null=True, blank=True, validators=[MinValueValidator(16)], help_text="Tokens of a reply."
    )
    session_s = models.PositiveIntegerField(
        "conversation length", null=True, blank=True, validators=[MinValueValidator(10)], help_text="Seconds."
    )
    callers = models.PositiveIntegerField("callers at once", null=True, blank=True, validators=[MinValueValidator(1)])
    fixed = models.CharField(
        max_length=200, blank=True, help_text=f"What callers may not change, of {', '.join(FIXABLE)}; commas between."
    )

    class Meta:
        abstract = True

    def clean(self) -> None:
        """Check what one field says of another.

        Raises:
            ValidationError: by field.
        """
        wrong: dict[str, str] = {}
        if self.mind == Mind.ADDRESS:
            if not self.model:
                wrong["model"] = "Name the model at that address."
            try:
                check_model_server(self.address)
            except InvalidParameter as refused:
                wrong["address"] = refused.message
        if (self.file or self.mind == Mind.FILE) and (refusal := _unfit(self.file)):
            wrong["file"] = refusal
        if unknown := [name for name in _entries(self.fallbacks) if catalogue().find(name, "chat") is None]:
            wrong["fallbacks"] = f"This server has no chat model {', '.join(unknown)}."
        labels = [server.label for server in settings.MCP_SERVERS]
        if unknown := [name for name in self.tool_names if name.partition("/")[0] not in labels]:
            wrong["tools"] = f"MCP_SERVERS has no {', '.join(unknown)}."
        if unknown := [name for name in _entries(self.fixed) if name not in FIXABLE]:
            wrong["fixed"] = f"There is no {', '.join(unknown)}; write of {', '.join(FIXABLE)}."
        if wrong:
            raise ValidationError(wrong)
        try:
            merge(SessionConfig(model="", voice=""), self.opening())
        except InvalidParameter as refused:
            raise ValidationError(refused.message) from refused

    def opening(self) -> dict[str, Any]:
        """Return the settings of its sessions, in the words of `session.update`."""
        hearing: dict[str, Any] = {"language": self.language} if self.language else {}
        if terms := _lines(self.terms):
            hearing["keywords"] = [*terms]
        given = {
            "voice": self.voice,
            "input_audio_transcription": hearing,
            "turn_detection": SILENCE_MS.get(self.patience) and {"silence_duration_ms": SILENCE_MS[self.patience]},
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        return {name: value for name, value in given.items() if value or value == 0.0}

    @property
    def fallback_list(self) -> tuple[str, ...]:
        """Names of the models that stand in."""
        return _entries(self.fallbacks)

    @property
    def tool_names(self) -> tuple[str, ...]:
        return _entries(self.tools)

    @property
    def forbidden_words(self) -> tuple[str, ...]:
        """Words that it neither takes nor gives."""
        return _lines(self.forbidden)

    @property
    def fixed_fields(self) -> frozenset[str]:
        """Fields of a session's settings that callers do not change."""
        return frozenset(_entries(self.fixed))

    def composition(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in COMPOSED}


COMPOSED = tuple(field.name for field in Composition._meta.local_fields)


class Agent(Composition):
    """One agent; its fields are the draft. Its name is a model's name, and that of the default one is `voice`."""

    name = models.SlugField(
        unique=True,
        max_length=60,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", "Use a to z, 0 to 9, hyphens and underscores.")],
    )
    sealed_key = models.TextField(blank=True, default="", editable=False)
    """Key of the model server, with the address that it is for."""

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return str(self.name)

    def clean(self) -> None:
        """See `Composition`; the name must not be that of a model."""
        super().clean()
        if self.name != VOICE and catalogue().has_card(self.name):
            raise ValidationError({"name": f"{self.name} is the name of a model of this server."})

    def keep_key(self, key: str) -> None:
        """Seal a key for the address of the draft; a draft with another address does without it."""
        self.sealed_key = seal(json.dumps({"address": self.address, "key": key})) if key else ""

    def key_for(self, address: str) -> str:
        """Return the key for a model server; empty where none was given for that very address."""
        if settings.AGENTS_DIR:
            current = self.current
            return str(settings.AGENT_KEYS.get(self.name, "")) if current and current.address == address else ""
        found = json.loads(unseal(self.sealed_key) or "{}") if self.sealed_key else {}
        return str(found["key"]) if found.get("address") == address else ""

    @property
    def current(self) -> AgentVersion | None:
        """The version that new conversations have."""
        found: AgentVersion | None = self.versions.order_by("-number").first()
        return found

    @property
    def is_published(self) -> bool:
        """The draft is what new conversations have."""
        current = self.current
        return current is not None and current.composition() == self.composition()

    def publish(self, by: str) -> AgentVersion:
        """Make a version of the draft, unless the current one is the same."""
        with transaction.atomic():
            Agent.objects.select_for_update().get(pk=self.pk)
            current = self.current
            if current is not None and current.composition() == self.composition():
                return current
            number = 1 if current is None else current.number + 1
            made: AgentVersion = self.versions.create(number=number, published_by=by[:150], **self.composition())
            return made

    def restore(self, version: AgentVersion) -> None:
        """Make an earlier version the draft."""
        for name, value in version.composition().items():
            setattr(self, name, value)
        self.save()


class AgentVersion(Composition):
    """A version of an agent. It does not change."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    published_at = models.DateTimeField(default=timezone.now)
    published_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("agent", "number"), name="agent_version_once"),)

    def __str__(self) -> str:
        return f"{self.agent}@{self.number}"


class DocumentSet(models.Model):
    """Documents of agents. A set does not change, so versions share it."""

    digest = models.CharField(primary_key=True, max_length=32)
    texts = models.JSONField()
    """By the name of the file."""

    def __str__(self) -> str:
        return f"{self.digest}"


def _unfit(file: str) -> str:
    """Return what is wrong with the name of a model's file; empty where it fits."""
    if file.startswith("http://"):
        return "Use https; http would let others change the file."
    if file.startswith("https://"):
        try:
            check_url(file)
        except InvalidParameter as refused:
            return refused.message
    elif not file or "\0" in file or (file.startswith("hf:") and not HUB_NAME.fullmatch(file)):
        return "Name a file, an https address, or hf:owner/repository:quantization."
    elif any(len(part.encode()) > MAX_NAME_BYTES for part in file.split("/")):
        return f"The name of a file or folder may have {MAX_NAME_BYTES} bytes."
    return ""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _entries(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())
