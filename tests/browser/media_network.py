"""A path for media that the tests can cut and mend: UDP through a proxy, for the calls of one page."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import Any

from playwright.sync_api import Error

from tests.loop_thread import LoopThread
from tests.realtime.webrtc.network import Faults, in_between

from .page import VoicePage


class MediaNetwork:
    """Every call that the page makes from now on goes through here. All methods may be called from any thread."""

    def __init__(self, voice: VoicePage, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.calls = 0
        self._paths = AsyncExitStack()
        self._loop = LoopThread()
        voice.page.route("**/voice/webrtc*", self._answer)

    def set_cut(self, is_cut: bool) -> None:
        """While cut, no datagram gets through either way."""
        self._loop.call(lambda: setattr(self.faults, "is_cut", is_cut))

    def close(self) -> None:
        self._loop.run(self._paths.aclose())
        self._loop.close()

    def _answer(self, route: Any) -> None:
        """Neither side learns the other's own addresses, so that no way leads past the proxy."""
        offer = re.sub(r"^a=candidate:.*\r\n", "", route.request.post_data, flags=re.MULTILINE)
        try:
            answer = route.fetch(post_data=offer)
        except Error:
            route.abort()
            return
        body = (
            self._loop.run(self._paths.enter_async_context(in_between(answer.text(), self.faults)))
            if answer.ok
            else None
        )
        self.calls += 1
        route.fulfill(response=answer, body=body)
