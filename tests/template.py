"""The process that servers are forked from: it has imported what all of them import.

No settings are read here and no thread is started: each server sets Django up by its own variables, and imports
onnxruntime, which has threads, by itself.
"""

from __future__ import annotations

import gc
import os
from importlib import import_module

from django.conf import settings
from django.utils.functional import empty

MODULES = (
    *("django.contrib.admin.sites", "django.contrib.staticfiles.handlers", "django.core.management.commands.migrate"),
    *("django.db.backends.sqlite3.base", "csp.middleware", "whitenoise.middleware", "channels.routing"),
    *("daphne.http_protocol", "daphne.ws_protocol", "twisted.internet.asyncioreactor"),
    *("aiodns", "aiohttp", "aiortc", "markdown_it", "psycopg", "redis.asyncio", "tokenizers", "websockets"),
    *("voiceapp.engines.assistant.skills", "voiceapp.engines.openai.client", "voiceapp.protocol.session"),
)
SCHEMAS = tuple(f"voiceapp.{room}.schemas" for room in ("compatible.responses", "generation", "images", "retrieval"))
"""They take pydantic a third of a second."""

os.environ.pop("DJANGO_SETTINGS_MODULE", None)
for module in MODULES:
    import_module(module)
settings.configure()  # django-ninja reads Django's own defaults when it is imported
for module in ("ninja", *SCHEMAS):
    import_module(module)
settings._wrapped = empty
gc.freeze()
