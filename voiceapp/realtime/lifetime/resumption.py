"""Resumption, as a caller asks for it when they connect: the query parameters `resume`, `last` and `heard`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from voiceapp.errors import InvalidParameter

ASKED = "on"
"""Value of `resume` by which a caller asks for a session that can be resumed; otherwise it is the token of one."""
MAX_HEARD = 16
"""Items whose voice may be under way at once."""
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_HEARD = re.compile(r"([A-Za-z0-9_-]{1,64}):([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Resumption:
    """A caller asks for a session that outlives its connection, or comes back to one."""

    token: str = ""
    """Token of the session to come back to, or of a new one where there is none; empty leaves it to the server."""
    last: int = 0
    """Number of the latest event that they received."""
    heard_ms: Mapping[str, int] = field(default_factory=dict)
    """Items whose voice they did not hear to its end, and how much they heard of each."""


def read_resumption(query: Mapping[str, str]) -> Resumption | None:
    """Read the query parameters of a connection; None when it does not ask for resumption.

    Raises:
        InvalidParameter: if `last` or `heard` cannot be read.
    """
    token = query.get("resume", "")
    if not token:
        return None
    last = query.get("last", "") or "0"
    if not _NUMBER.fullmatch(last):
        raise InvalidParameter("last must be the number of the latest event that was received.", param="last")
    heard = [piece for piece in query.get("heard", "").split(",") if piece]
    found = [_HEARD.fullmatch(piece) for piece in heard[: MAX_HEARD + 1]]
    if len(found) > MAX_HEARD or not all(found):
        message = f"heard must be a list such as item_1:1200,item_2:0 of {MAX_HEARD} items at most."
        raise InvalidParameter(message, param="heard")
    heard_ms = {match[1]: int(match[2]) for match in found if match is not None}
    return Resumption("" if token == ASKED else token, int(last), heard_ms)
