"""How an answer names where a task stands."""

from __future__ import annotations

from typing import Literal

UNKNOWN = "UNKNOWN"
"""What is said of a task that there is not, is no more, or is somebody else's."""

Shown = Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED", "UNKNOWN"]
