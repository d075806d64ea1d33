"""What accounts need to know of models: by which names one goes, and whether it runs inside this process.

Read from the `VOICE_MODELS` setting, as the engines' catalogue does; accounts and engines do not know each other.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

INSIDE = ("voiceapp.engines.embedded.", "voiceapp.engines.genai.")
"""Packages of providers that run a model in this process."""


def _entry(model: str, family: str) -> dict[str, Any] | None:
    for entry in settings.VOICE_MODELS:
        if entry["kind"] == family and model in (entry["name"], *entry.get("aliases", ())):
            return dict(entry)
    return None


def names_of(model: str, family: str) -> frozenset[str]:
    """The name and all aliases of a model; of one that nobody knows, the name asked for."""
    entry = _entry(model, family)
    return frozenset({model} if entry is None else {entry["name"], *entry.get("aliases", ())})


def is_known(name: str) -> bool:
    """Whether a model of any kind has this name or alias."""
    return any(name in (entry["name"], *entry.get("aliases", ())) for entry in settings.VOICE_MODELS)


def runs_inside(model: str, family: str) -> bool:
    """Whether a model's work is done by this process; what is not known to be counts as somebody's bill."""
    entry = _entry(model, family)
    return entry is not None and str(entry["provider"]).startswith(INSIDE)
