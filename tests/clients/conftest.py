"""One running server, and somebody to talk to it."""

from __future__ import annotations

from tests.realtime.conftest import home, servers, voices

__all__ = ["home", "servers", "voices"]
