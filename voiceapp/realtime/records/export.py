"""A conversation as a file: JSON, text, or subtitles."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Max, QuerySet, Sum

from voiceapp.accounts.models import UsageRecord
from voiceapp.formats import dollars
from voiceapp.realtime.models import RealtimeSession, Turn

MOST_TURNS = 1000
"""Turns of a conversation whose usage is summed up."""
SESSION_FIELDS = ("id", "model", "agent_version", "transport", "started_at", "ended_at", "close_code", "close_reason")
TURN_FIELDS = (
    *("started_at", "user_text", "assistant_text", "heard_text", "status", "interrupted", "is_spoken", "served_by"),
    *("end_of_turn_ms", "recognition_ms", "first_token_ms", "first_audio_ms", "input_audio_ms", "output_audio_ms"),
)


def as_json(session: RealtimeSession) -> str:
    """Return the conversation and its turns, as their rows have them."""
    turns = list(session.turns.order_by("ordinal").values(*TURN_FIELDS))
    whole = {name: getattr(session, name) for name in SESSION_FIELDS} | {"turns": turns}
    return json.dumps(whole, default=_time, ensure_ascii=False, indent=2)


def as_text(session: RealtimeSession) -> str:
    """Return what was said, a line each."""
    return "".join(f"{speaker}: {text}\n" for turn in _turns(session) for speaker, text in _said(turn))


class Caption(NamedTuple):
    """Words, and when they were said, from the beginning of the conversation on."""

    begins: timedelta
    ends: timedelta
    speaker: str
    text: str


def captions(session: RealtimeSession) -> list[Caption]:
    """Return what was said: the caller's words until the reply began, then the reply."""
    found: list[Caption] = []
    for turn in _turns(session):
        begin = turn.started_at - session.started_at
        reply = begin + timedelta(milliseconds=turn.first_audio_ms or 0)
        times = {
            "Caller": (begin - timedelta(milliseconds=turn.input_audio_ms), reply),
            "Assistant": (reply, reply + timedelta(milliseconds=max(1000, turn.output_audio_ms))),
        }
        found += [Caption(*times[speaker], speaker, text) for speaker, text in _said(turn)]
    return found


def as_srt(session: RealtimeSession) -> str:
    """Return what was said as subtitles."""
    return "\n".join(
        f"{place}\n{_stamp(said.begins)} --> {_stamp(said.ends)}\n{said.speaker}: {said.text}\n"
        for place, said in enumerate(captions(session), start=1)
    )


def usage(session: RealtimeSession) -> str:
    """Return what the conversation used and cost, as the ledger has it."""
    turns = session.turns.aggregate(last=Max("ordinal"))["last"] or 0
    names = [session.pk, *(f"{session.pk}:{ordinal}" for ordinal in range(1, min(turns, MOST_TURNS) + 1))]
    rows = UsageRecord.objects.filter(request_id__in=names).order_by("unit").values("unit")
    used = list(rows.annotate(amount=Sum("quantity"), nano=Sum("cost_nano")))
    told = ", ".join(f"{row['amount']} {row['unit'].replace('_', ' ')}" for row in used)
    return f"{dollars(sum(row['nano'] for row in used))} $: {told}" if used else ""


FORMATS: dict[str, tuple[str, Callable[[RealtimeSession], str]]] = {
    "json": ("application/json", as_json),
    "txt": ("text/plain", as_text),
    "srt": ("application/x-subrip", as_srt),
}
"""Media type and writer, by the ending of the file."""


def _turns(session: RealtimeSession) -> QuerySet[Turn]:
    rows: QuerySet[Turn] = session.turns.order_by("ordinal")
    return rows


def _said(turn: Turn) -> list[tuple[str, str]]:
    heard = turn.heard_text if turn.interrupted else turn.assistant_text
    return [(speaker, text) for speaker, text in (("Caller", turn.user_text), ("Assistant", heard)) if text]


def _stamp(at: timedelta) -> str:
    ms = max(0, round(at.total_seconds() * 1000))
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{ms:03}"


def _time(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
