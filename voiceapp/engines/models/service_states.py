"""States of other services, known without asking them."""

from __future__ import annotations

from dataclasses import dataclass

from voiceapp.errors import EngineError


@dataclass(frozen=True, slots=True)
class ServiceState:
    """State of a service at the latest contact of this process."""

    name: str
    """The operator's name for it."""
    circuit: str
    """Circuit breaker: `closed`, requests go out; `open`, none do; `half-open`, one as a trial."""
    trouble: EngineError | None
    """Error of the latest contact; None while it answers."""
    heard_s_ago: float | None
    """Seconds since it last answered as it should; None: never yet."""

    @property
    def is_reachable(self) -> bool | None:
        """None while it was never asked."""
        if self.trouble is None and self.heard_s_ago is None:
            return None
        return self.trouble is None

    @property
    def for_operators(self) -> str:
        if self.trouble is not None:
            return f"{self.trouble.for_operators} (circuit {self.circuit})"
        return "not asked yet" if self.heard_s_ago is None else f"reachable, heard {self.heard_s_ago:.0f} s ago"
