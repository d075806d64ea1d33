"""A path for media that the tests can cut and mend: UDP through a proxy, for the calls of one page."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from playwright.sync_api import Error

from tests.realtime.webrtc.network import Faults, in_between

from .page import VoicePage
from .proxy import PATIENCE_S

Result = TypeVar("Result")


class MediaNetwork:
    """Every call that the page makes from now on goes through here. All methods may be called from any thread."""

    def __init__(self, voice: VoicePage, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.calls = 0
        self._paths = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        voice.page.route("**/voice/webrtc*", self._answer)

    def set_cut(self, is_cut: bool) -> None:
        """While cut, no datagram gets through either way."""
        self._loop.call_soon_threadsafe(setattr, self.faults, "is_cut", is_cut)

    def close(self) -> None:
        self._run(self._paths.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def _answer(self, route: Any) -> None:
        """Neither side learns the other's own addresses, so that no way leads past the proxy."""
        offer = re.sub(r"^a=candidate:.*\r\n", "", route.request.post_data, flags=re.MULTILINE)
        try:
            answer = route.fetch(post_data=offer)
        except Error:
            route.abort()
            return
        body = self._run(self._paths.enter_async_context(in_between(answer.text(), self.faults))) if answer.ok else None
        self.calls += 1
        route.fulfill(response=answer, body=body)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)
