"""Figures of one run: computed from what callers saw, printed for people, written as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.clips import word_errors, words
from tests.bench.serving import Cost
from tests.bench.talking import Caller, Turn

STAGES = ("end_of_turn_ms", "recognition_ms", "first_token_ms", "first_audio_ms")


@dataclass(frozen=True, slots=True)
class Conversation:
    callers: int
    refused: int
    """Of the callers; the others had places, and all else is of them."""
    begin_over_s: float
    """Within which they began to talk; 0: together."""
    turns: int
    answered: int
    """Turns whose answer came, and not before they were over: the latencies are of these."""
    p50_ms: float
    p95_ms: float
    early_ends: int
    """Clips in which the server took a pause for the end at least once."""
    early_answers: int
    """Clips of which the caller began to hear an answer before they were over."""
    unanswered: int
    errors: int
    """Error events that no caller provoked."""
    word_error_percent: float
    stages_ms: dict[str, tuple[float, float]]
    """Stage -> (p50, p95), after the last speech sample as the server's voice detection saw it."""
    cpu_s_per_session_minute: float
    rss_mb: float
    pss_mb: float
    ping_p50_ms: float
    ping_p99_ms: float
    """A WebSocket ping is answered by the event loop: what it waits is what every event waits."""
    per_turn: list[dict[str, Any]]


def conversation(
    everybody: Sequence[Caller], begin_over_s: float, before: Cost, after: Cost, full: Cost
) -> Conversation:
    """Sum up; `full` is the cost while all were talking."""
    turns = [turn for caller in everybody for turn in caller.turns]
    times = [turn.answered_ms for turn in turns if turn.answered_ms is not None]
    pings = [ping for caller in everybody for ping in caller.pings_ms]
    refused = sum(caller.is_refused for caller in everybody)
    minutes = (after.at - before.at) / 60 * (len(everybody) - refused)
    return Conversation(
        callers=len(everybody),
        refused=refused,
        begin_over_s=begin_over_s,
        turns=len(turns),
        answered=len(times),
        p50_ms=percentile(times, 50),
        p95_ms=percentile(times, 95),
        early_ends=sum(turn.early_ends > 0 for turn in turns),
        early_answers=sum(bool(turn.early_answers) for turn in turns),
        unanswered=sum(turn.answered_ms is None and not turn.early_answers for turn in turns),
        errors=sum(len(turn.errors) for turn in turns),
        word_error_percent=word_error_percent(turns),
        stages_ms={stage: _stage(turns, stage) for stage in STAGES},
        cpu_s_per_session_minute=(after.cpu_s - before.cpu_s) / minutes,
        rss_mb=full.rss_mb,
        pss_mb=full.pss_mb,
        ping_p50_ms=percentile(pings, 50),
        ping_p99_ms=percentile(pings, 99),
        per_turn=[{**asdict(turn), "early_answers": len(turn.early_answers)} for turn in turns],
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` per cent of all do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))] if ordered else 0.0


def word_error_percent(turns: Sequence[Turn]) -> float:
    """All words of all turns together; what was heard as several turns counts as one text."""
    errors = sum(word_errors(turn.reference, " ".join(turn.heard)) for turn in turns)
    return 100 * errors / max(1, sum(len(words(turn.reference)) for turn in turns))


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": names[0] if names else platform.machine(),
        "memory_gb": round(memory_kb / 2**20, 1),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def print_machine(facts: dict[str, Any], source: str) -> None:
    print(f"{facts['cores']} cores ({facts['processor']}), {facts['memory_gb']} GB, Python {facts['python']}")
    print(f"Load average before the run {facts['load_before']}. Speech: {source}.")
    print("Server, callers and whatever else runs share the machine; a busy one, or cores that change their clock,")
    print("move times by half and more. Compare figures of one machine, and run twice.\n")


def print_conversations(found: Sequence[Conversation]) -> None:
    print("Voice to voice, from the last speech sample sent to the first sound of the answer")
    print(
        "sessions  refused  begin over s  turns  p50 ms  p95 ms  ended early  heard early  unanswered  errors   WER %  "
        "CPU s/min  ping p99 ms"
    )
    for row in found:
        print(
            f"{row.callers:8d} {row.refused:8d} {row.begin_over_s:13.0f} {row.turns:6d} "
            f"{row.p50_ms:7.0f} {row.p95_ms:7.0f} {row.early_ends:12d} {row.early_answers:12d} {row.unanswered:11d} "
            f"{row.errors:7d} {row.word_error_percent:7.1f} {row.cpu_s_per_session_minute:10.2f} "
            f"{row.ping_p99_ms:12.1f}"
        )
    print("\nStages, ms after the last speech frame that voice detection saw (p50 / p95)")
    print("sessions" + "".join(f"{stage.removesuffix('_ms').replace('_', ' '):>18}" for stage in STAGES))
    for row in found:
        shown = "".join(f"{row.stages_ms[stage][0]:10.0f} / {row.stages_ms[stage][1]:4.0f} " for stage in STAGES)
        print(f"{row.callers:8d}{shown}")
    print()


def print_memory(idle: Cost, found: Sequence[Conversation]) -> None:
    print(f"Memory (PSS of all processes): idle {idle.pss_mb:.0f} MB", end="")
    for row in found:
        print(f", {row.callers} talking {row.pss_mb:.0f} MB", end="")
    added = added_session_mb(found)
    print(f"; {added:.1f} MB for each added session" if added is not None else "", end="\n\n")


def added_session_mb(found: Sequence[Conversation]) -> float | None:
    """Between the fewest and the most sessions measured; None of fewer than two measurements."""
    few, many = found[0], found[-1]
    return (many.pss_mb - few.pss_mb) / (many.callers - few.callers) if many.callers > few.callers else None


def write(file: Path, figures: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(figures, indent=1) + "\n")


def _stage(turns: Sequence[Turn], stage: str) -> tuple[float, float]:
    times = [time for turn in turns if (time := turn.metrics.get(stage)) is not None]
    return percentile(times, 50), percentile(times, 95)
