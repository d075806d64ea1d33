"""One running server, and somebody to talk to it."""

from __future__ import annotations

from tests.clients.environments import is_tried
from tests.realtime.conftest import home, product, voices

__all__ = ["home", "product", "voices"]

collect_ignore = [] if is_tried("llamaindex") else ["test_llamaindex.py"]
