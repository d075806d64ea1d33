"""How much is tried: what shows that a property holds, or, in `make soak` (THOROUGH=1), all variants of it."""

from __future__ import annotations

import os
from typing import TypeVar

Variant = TypeVar("Variant")

IS_THOROUGH = bool(os.environ.get("THOROUGH"))


def usually(*chosen: Variant, more: tuple[Variant, ...]) -> list[Variant]:
    """Parameters of a test that costs much: those `chosen`, and `more` where all is to be tried."""
    return [*chosen, *more] if IS_THOROUGH else [*chosen]
