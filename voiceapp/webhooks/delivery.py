"""One attempt at a delivery: the call, and its result."""

from __future__ import annotations

import codecs
import time
from collections.abc import Mapping
from dataclasses import dataclass

from voiceapp.errors import InvalidParameter
from voiceapp.outbound.client import FetchFailed, FetchTimeout, Outbound, TlsInvalid
from voiceapp.webhooks.rules import FailureKind, Outcome

TOTAL_S = 5.0
"""Time that a receiver has, from the look-up of its name to the end of its response."""
KEPT_BYTES = 1024
"""Length of the part of a response that the log keeps."""
HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": "Voiceapp-Webhook/1.0",
    "Accept-Encoding": "identity",  # the log keeps what comes, and nothing is decompressed
}


@dataclass(frozen=True, slots=True)
class Attempted:
    """The result of an attempt, for the rules and for the log."""

    outcome: Outcome
    duration_ms: int
    answer_start: str = ""
    """At most the first KiB of the response; bytes that are not text are replaced."""
    error: str = ""
    """One sentence on why no response came; empty when one did."""


async def attempt(
    outbound: Outbound, url: str, body: bytes, signature: Mapping[str, str], *, total_s: float = TOTAL_S
) -> Attempted:
    """Send a signed body once. Whatever the receiver does is a result, and nothing is raised for it."""
    began = time.monotonic()
    try:
        answer = await outbound.post(url, body=body, headers={**HEADERS, **signature}, total_s=total_s, keep=KEPT_BYTES)
    except (InvalidParameter, FetchFailed) as error:
        elapsed_ms = round((time.monotonic() - began) * 1000)
        return Attempted(Outcome(trouble=_trouble(error)), elapsed_ms, error=error.message)
    return Attempted(
        Outcome(answer.status, retry_after=answer.headers.get("Retry-After", "")),
        answer.elapsed_ms,
        answer_start=_text(answer.body_start),
    )


def _text(start: bytes) -> str:
    """The beginning of a response as any database can hold it."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(start, final=len(start) < KEPT_BYTES)
    return text.replace("\0", "\ufffd")  # PostgreSQL's text holds no NUL


def _trouble(error: InvalidParameter | FetchFailed) -> FailureKind:
    if isinstance(error, InvalidParameter):
        return FailureKind.ADDRESS
    if isinstance(error, FetchTimeout):
        return FailureKind.TIMEOUT
    return FailureKind.TLS if isinstance(error, TlsInvalid) else FailureKind.NETWORK
