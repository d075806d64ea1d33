"""The admin's page on which the model of an agent is chosen, fetched and tried."""

from __future__ import annotations

import logging
import threading
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from voiceapp.agents.answering import chat_card, deciding
from voiceapp.agents.models import Agent, Mind
from voiceapp.catalogue.defaults import VOICE, chat_model_file
from voiceapp.catalogue.lookup import catalogue
from voiceapp.engines.models.download import fetch_model
from voiceapp.engines.models.fetching import FetchError
from voiceapp.engines.models.local_servers import local_servers
from voiceapp.engines.models.trial import tried

logger = logging.getLogger(__name__)

FETCHED = ("https://", "hf:")
CHOICES = {
    "skills": (Mind.SKILLS, ()),
    "address": (Mind.ADDRESS, ("address", "model")),
    "file": (Mind.FILE, ("file",)),
}
"""By its action, what a choice makes write the replies, and the fields that come with it."""
REFRESH_S = 2
"""Between two looks of the page at a file that is fetched."""


class Fetches:
    """Model files that this process fetches, one at a time; what has come of one stays when the process ends, and is
    gone on with."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}
        """The latest news of each, by the name that was given."""
        self._busy = threading.Lock()
        self._running = ""

    def start(self, given: str) -> None:
        """Fetch a model on a thread of its own, unless one is fetched already."""
        if self._busy.acquire(blocking=False):
            self._running = given
            threading.Thread(target=self._fetch, args=(given,), name="fetch", daemon=True).start()
        elif given != self._running:
            self._note(given, "Another model is being fetched. Fetch this one when it is there.")

    def is_running(self, given: str) -> bool:
        return self._running == given != ""

    def news(self, given: str) -> str:
        """Return what was last heard of one."""
        return self._lines.get(given, "")

    def _fetch(self, given: str) -> None:
        try:
            to = chat_model_file(given, settings.MODELS_DIR)
            networks = [ip_network(network) for network in settings.FETCH_ALLOWED_NETWORKS]
            fetch_model(given, to, sha256="", report=lambda line: self._note(given, line), allowed_networks=networks)
        except (FetchError, OSError, ValueError) as error:
            logger.warning("model %s: %s", given, error)
            self._note(given, str(error))
        finally:
            self._running = ""
            self._busy.release()

    def _note(self, given: str, line: str) -> None:
        self._lines[given] = line.strip()


fetches = Fetches()


def assistant(request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """The page of one agent; `voice` is the default one, which the page makes where it does not exist."""
    if not request.user.has_perm("agents.change_agent"):
        raise PermissionDenied
    agent = Agent.objects.filter(name=name).first() or (Agent(name=VOICE) if name == VOICE else None)
    if agent is None:
        raise Http404
    may_choose = not settings.AGENTS_DIR and not (name == VOICE and deciding())
    action, trial = request.POST.get("action", ""), None
    if action == "try":
        trial = async_to_sync(tried)(chat_card(agent, agent) or catalogue().default("chat"))
    elif action == "fetch" and agent.file.startswith(FETCHED):
        fetches.start(agent.file)
    elif action in CHOICES:
        if may_choose:
            _choose(request, agent, action)
    elif action:
        return HttpResponseBadRequest("This page has no such choice now. Go back and load it again.")
    if action and action != "try":
        return HttpResponseRedirect(reverse("admin:agents_try", args=(name,)))
    file = chat_model_file(agent.file, settings.MODELS_DIR) if agent.file else None
    context |= {
        "title": "Assistant" if name == VOICE else f"Model of {name}",
        "agent": agent,
        "decided": deciding() if name == VOICE else [],
        "may_choose": may_choose,
        "servers": async_to_sync(local_servers)(),
        "model": _model(agent),
        "can_fetch": agent.file.startswith(FETCHED) and file is not None and not file.is_file(),
        "is_fetching": fetches.is_running(agent.file),
        "news": fetches.news(agent.file),
        "came_mb": _size(file) // 1_000_000 if file else 0,
        "trial": trial,
    }
    response = render(request, "admin/assistant.html", context)
    response._csp_update = {"media-src": ["data:"]}
    if context["is_fetching"]:
        response["Refresh"] = str(REFRESH_S)
    return response


def _choose(request: HttpRequest, agent: Agent, action: str) -> None:
    """Save a choice in the draft, and publish what is current with that choice, unless its file has yet to be fetched.

    The rest of the draft may be half written, and stays one.
    """
    mind, fields = CHOICES[action]
    choice = {"mind": mind} | {field: request.POST.get(field, "").strip() for field in fields}
    current = agent.current if agent.pk else None
    made = Agent(pk=agent.pk, name=agent.name, **(current or Agent()).composition() | choice)
    try:
        made.full_clean(validate_unique=False)
    except ValidationError as error:
        for message in error.messages:
            messages.error(request, message)
        return
    for field, value in choice.items():
        setattr(agent, field, value)
    if action == "address" and (key := request.POST.get("key", "").strip()):
        agent.keep_key(key)
    agent.save(update_fields=[*choice, "sealed_key"] if agent.pk else None)
    made.pk = agent.pk
    if mind == Mind.FILE and not chat_model_file(agent.file, settings.MODELS_DIR).is_file():
        messages.warning(request, "The file is not on this machine yet. Fetch it, and choose it again.")
    elif current is None and agent.name != VOICE:
        messages.warning(request, f"The draft has it. {agent} answers once it is published.")
    else:
        messages.success(request, f"New conversations have {made.publish(request.user.get_username())}.")


def _model(agent: Agent) -> str:
    card = chat_card(agent, agent) or catalogue().default("chat")
    return Path(agent.file).name if agent.mind == Mind.FILE and card.runs_here else card.name


def _size(file: Path) -> int:
    part = file.with_name(f"{file.name}.part")
    return next((each.stat().st_size for each in (file, part) if each.is_file()), 0)
