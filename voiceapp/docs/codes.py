"""Refusals and close codes: their meaning, and what a program does about them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from django.utils.safestring import SafeString

from voiceapp.http.error_responses import compatible_code, written_code
from voiceapp.realtime import close_codes

from .writing import to_inline_html


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    meaning: str
    remedy: str
    """Advice in Markdown."""
    status: str = ""
    """HTTP status, where the code comes with one."""
    compatible: str = ""
    """The code in OpenAI's style."""
    events: Sequence[str] = ()
    """The client's events that can get it; empty for errors of no event."""

    @property
    def remedy_html(self) -> SafeString:
        return to_inline_html(self.remedy)


_KNOWN = tomllib.loads(Path(__file__).with_name("codes.toml").read_text(encoding="utf-8"))
REFUSALS = [
    Code(**about, compatible="" if about["code"].isdigit() else compatible_code(about["code"]))
    for about in _KNOWN["refusals"]
]
"""Meanings of `code` of a refused request or a failed task."""
EVENT_CODES = [Code(**about) for about in _KNOWN["events"]]
"""Meanings of `error.code` of an `error` event in a conversation."""
TASK_CODES = ("InvalidParameter", "ModelNotFound", "RequestTimeOut", "Throttling.Concurrency", "ModelUnavailable")


def codes_at(path: str, codes: Sequence[str]) -> list[Code]:
    """Refusals with these codes, as an operation at this path writes them."""
    refusals = [refusal for refusal in REFUSALS if refusal.code in codes]
    return [replace(refusal, code=written_code(path, refusal.code), compatible="") for refusal in refusals]


def codes_of_event(name: str) -> list[Code]:
    """Errors that an event of the client can get, in `error` or, for a command of run-task, in `task-failed`."""
    if name.endswith("-task"):
        return codes_at("/api/v1/", TASK_CODES)
    return [code for code in EVENT_CODES if name in code.events or "*" in code.events]


_REMEDIES = {
    close_codes.NORMAL: "Nothing: the conversation ended as it should.",
    1001: "Connect again when the user comes back.",
    1002: "Use a WebSocket library that follows RFC 6455.",
    1005: "Nothing: your side closed without a code.",
    close_codes.ABANDONED: "Connect again after a moment, later each time.",
    1007: "Send text frames in UTF-8.",
    1009: "Send audio in messages of less than a megabyte.",
    1011: "Connect again once; tell the operator if it happens again.",
    close_codes.LIFETIME_OVER: "Connect again to begin a new conversation.",
    close_codes.INTERNAL_ERROR: "Connect again once; tell the operator if it happens again.",
    close_codes.SERVER_STOPPING: "Connect again after a moment: another process takes over.",
    close_codes.KEY_REVOKED: "Use a key that is valid; do not connect again with this one.",
    close_codes.ENDED_BY_OPERATOR: "Ask the operator of the server why, before you connect again.",
    close_codes.BUDGET_USED_UP: "Ask the operator to raise the budget of the key, or wait for the next month.",
    close_codes.FLOOD: "Send audio at the speed of speech, and read what the server sends.",
    close_codes.TEMPORARY_KEY_OVER: "Make a new temporary key, and connect with it.",
    close_codes.NO_SEAT: "Connect again after a moment, later each time.",
    close_codes.UNAVAILABLE: "Connect again after a moment; `/readyz` says what is missing.",
}

CLOSE_CODES = tuple(
    Code(str(code), f"{meaning[0].upper()}{meaning[1:]}.", _REMEDIES[code])
    for code, meaning in close_codes.MEANINGS.items()
)
"""Close codes of the WebSocket of a conversation."""
