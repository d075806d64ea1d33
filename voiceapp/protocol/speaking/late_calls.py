"""Function calls whose outputs are late: the caller is told once, and the conversation goes on."""

from __future__ import annotations

from voiceapp.protocol.speaking.response import Response
from voiceapp.protocol.states import CALLS_STEPS, CallsState, ResponseState, step

FILLER_AFTER_S = 1.0
"""Silence of both sides after which the caller is told."""


class LateCalls:
    """The function calls of one conversation that its client has yet to answer."""

    def __init__(self) -> None:
        self.state = CallsState.NONE
        self._pending: set[str] = set()
        self._due = 0.0

    @property
    def due(self) -> float | None:
        """Time at which the caller is told, if both are silent until then."""
        return self._due if self.state is CallsState.CALLED else None

    def ended(self, response: Response, now: float) -> None:
        """Take note of what a response has called; one that spoke has told the caller itself."""
        if response.is_out_of_band or response.state is not ResponseState.COMPLETED or not response.called:
            return
        self._pending = set(response.called)
        self._due = max(now, response.playout.heard_at) + FILLER_AFTER_S
        self._step("call")
        if response.message:
            self._step("tell")

    def tell(self) -> None:
        self._step("tell")

    def answered(self, call_id: str) -> None:
        """The client has added the output of a call."""
        is_one_of_several = self._pending - {call_id} and call_id in self._pending
        self._pending.discard(call_id)
        if not is_one_of_several:
            self._step("answer")

    def read(self) -> None:
        """A response reads the conversation."""
        self._step("read")

    def _step(self, name: str) -> None:
        self.state = step(CALLS_STEPS, self.state, name)
