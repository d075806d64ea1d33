"""Agents in the operators' site: a draft that is edited and tried, and the versions that were published of it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.admin import ModelAdmin

from voiceapp.agents.answering import deciding
from voiceapp.agents.documents import SUFFIXES, kept, texts_of
from voiceapp.agents.models import Agent, AgentVersion, Composition
from voiceapp.agents.preamble import PREAMBLE
from voiceapp.catalogue.defaults import VOICE
from voiceapp.http.admin import ReadOnlyInline

MODEL_FIELDS = ("mind", "address", "model", "key", "file", "fallbacks", "temperature", "max_tokens")


class SeveralFiles(forms.FileField):
    def clean(self, data: Any, initial: Any = None) -> Any:
        return [super(SeveralFiles, self).clean(each, initial) for each in data or ()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class AgentForm(forms.ModelForm):
    """The draft, its documents, and the key of its model server, which is never shown again."""

    added = SeveralFiles(
        label="add documents",
        required=False,
        widget=FilesInput(attrs={"accept": ",".join(SUFFIXES)}),
        help_text="Markdown and text files. With documents of its own, it does not reply from those of the server.",
    )
    removed = forms.MultipleChoiceField(
        label="remove documents", required=False, widget=forms.CheckboxSelectMultiple, help_text="The ones it has."
    )
    key = forms.CharField(
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Kept encrypted, for this address only. Empty keeps the one that is there.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._texts = texts_of(self.instance.documents)
        if "removed" in self.fields:
            self.fields["removed"].choices = [(name, name) for name in self._texts]

    def clean(self) -> Any:
        """Keep the documents."""
        removed, added = self.cleaned_data.get("removed") or (), self.cleaned_data.get("added") or ()
        if removed or added:
            files = {name: text.encode() for name, text in self._texts.items() if name not in removed}
            try:
                self.instance.documents = kept(files | {file.name: file.read() for file in added})
            except forms.ValidationError as error:
                self.add_error("added", error)
        return super().clean()

    def save(self, commit: bool = True) -> Any:
        if self.cleaned_data.get("key"):
            self.instance.keep_key(self.cleaned_data["key"])
        return super().save(commit)


def differences(before: Composition | None, after: Composition) -> str:
    """Return the fields that two compositions differ in, in words."""
    was = before.composition() if before else Agent().composition()
    changed = [name for name, value in after.composition().items() if value != was[name]]
    return ", ".join(str(Agent._meta.get_field(name).verbose_name) for name in changed) or "nothing"


class VersionInline(ReadOnlyInline):
    model = AgentVersion
    fields = readonly_fields = ("number", "published_at", "published_by", "changed", "restore")

    @admin.display(description="changed")
    def changed(self, row: AgentVersion) -> str:
        return differences(row.agent.versions.filter(number__lt=row.number).first(), row)

    @admin.display(description="restore")
    def restore(self, row: AgentVersion) -> str:
        if settings.AGENTS_DIR:
            return ""
        button = '<button class="button" name="_restore" value="{}">Make it the draft</button>'
        return str(format_html(button, row.number))


@admin.register(Agent)
class AgentAdmin(ModelAdmin):
    """Also where `voice`, the default agent, is composed."""

    form = AgentForm
    list_display = ("name", "title", "is_public", "mind", "version", "unpublished")
    inlines = (VersionInline,)
    change_form_template = "admin/agents/agent/change_form.html"
    fieldsets = (
        (None, {"fields": ("name", "title", "is_public", "unpublished", "preamble", "instructions", "first_words")}),
        ("How it speaks and hears", {"fields": ("voice", "pace", "language", "terms", "patience")}),
        ("What replies", {"fields": ("decided", *MODEL_FIELDS)}),
        ("What it knows and does", {"fields": ("added", "removed", "tools", "forbidden")}),
        ("Limits", {"fields": ("session_s", "callers", "fixed")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("unpublished", "preamble", "decided", *(("name",) if obj else ()))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and not settings.AGENTS_DIR

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_add_permission(request)) and not settings.AGENTS_DIR

    @admin.display(description="version")
    def version(self, row: Agent) -> str:
        return str(row.current.number) if row.current else "not published"

    @admin.display(description="not yet published")
    def unpublished(self, row: Agent) -> str:
        return differences(row.current, row) if row.pk else "all of it"

    @admin.display(description="stands first")
    def preamble(self, row: Agent) -> str:
        return PREAMBLE

    @admin.display(description="decided by")
    def decided(self, row: Agent) -> str:
        if row.name == VOICE and (names := deciding()):
            return f"The environment: {', '.join(names)}. Remove that to choose here."
        return "What stands here."

    def response_add(self, request: HttpRequest, obj: Agent, post_url_continue: str | None = None) -> HttpResponse:
        return self._after(request, obj) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Agent) -> HttpResponse:
        return self._after(request, obj) or super().response_change(request, obj)

    def _after(self, request: HttpRequest, obj: Agent) -> HttpResponse | None:
        """Publish the draft that was saved, or take an earlier version in its place."""
        if "_publish" in request.POST:
            version = obj.publish(request.user.get_username())
            self.message_user(request, f"New conversations have {version}.", messages.SUCCESS)
        elif (number := request.POST.get("_restore", "")).isdecimal():
            version = obj.versions.filter(number=int(number)).first()
            if version is None:
                return None
            obj.restore(version)
            self.message_user(request, f"The draft is that of {version}. Publish it to have it in conversations.")
        elif "_try" not in request.POST:
            return None
        else:
            return HttpResponseRedirect(f"{reverse('agent', args=(obj.name,))}?version=draft")
        return HttpResponseRedirect(reverse("admin:agents_agent_change", args=(obj.pk,)))
