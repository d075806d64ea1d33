"""One running server, and somebody to talk to it."""

from __future__ import annotations

from tests.clients.environments import is_tried
from tests.realtime.conftest import home, product, serve, voices

__all__ = ["home", "product", "serve", "voices"]

NEEDED = {"test_llamaindex.py": "llamaindex", "test_pages.py": "javascript"}
collect_ignore = [file for file, environment in NEEDED.items() if not is_tried(environment)]
