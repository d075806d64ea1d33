"""The families of the reference: a page each, and which operations stand on it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Family:
    slug: str
    """Its name in the address, and its anchor in the contents."""
    title: str
    lead: str
    roots: Sequence[str]
    """Beginnings of the paths of its operations. The longest root of all families decides."""
    manual: Sequence[str] = ()
    sockets: Mapping[str, str] = field(default_factory=dict)
    """Meanings of WebSockets, which an OpenAPI document cannot describe, by path."""


_TEXT = Path(__file__).with_name("families.toml").read_text(encoding="utf-8")
FAMILIES = tuple(Family(slug, **about) for slug, about in tomllib.loads(_TEXT).items())


def family_of(path: str) -> Family:
    """The family whose root is the longest beginning of `path`.

    Raises:
        LookupError: if no family has it: a new operation needs a place.
    """
    fitting = [(len(root), family) for family in FAMILIES for root in family.roots if path.startswith(root)]
    if not fitting:
        raise LookupError(f"No family of voiceapp/docs/families.toml has {path}.")
    return max(fitting, key=lambda found: found[0])[1]
