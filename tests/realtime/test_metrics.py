"""What Prometheus scrapes, who may, and that dashboard and alerts ask for metrics that exist."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.realtime.conftest import Serve
from tests.realtime.product import Product
from tests.realtime.talker import call
from tests.serving import ROOT

MONITORING = sorted((ROOT / "docs" / "monitoring").iterdir())
BEHIND_A_PROXY = {"X-Forwarded-For": "203.0.113.9"}


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(LOG_FORMAT="json", METRICS_TOKEN="for-prometheus")


def scrape(product: Product, **headers: str) -> dict[tuple[str, ...], float]:
    request = urllib.request.Request(f"{product.origin}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        families = text_string_to_metric_families(response.read().decode())
        return {(sample.name, *sample.labels.values()): sample.value for each in families for sample in each.samples}


async def test_a_conversation_is_counted_and_logged(product: Product) -> None:
    turn = ("voiceapp_turns_total", "false", "completed")
    before = scrape(product)
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask("What time is it?")
        await talker.wait("response.done")
        during = scrape(product)
        assert during["voiceapp_sessions", "websocket"] == during["voiceapp_seats", "taken"] == 1
        assert during["voiceapp_event_loop_tasks",] > before["voiceapp_event_loop_tasks",]
    row = (await product.row("select id from realtime_realtimesession where ended_at is not null"))["id"]
    after = scrape(product)
    assert after["voiceapp_sessions", "websocket"] == 0
    assert after[turn] == before.get(turn, 0) + 1
    assert after["voiceapp_sessions_ended_total", "1000", "websocket"] == 1
    assert after["voiceapp_ready",] == 1
    assert after["voiceapp_lane_wait_seconds_count", "reply"] > before["voiceapp_lane_wait_seconds_count", "reply"]
    assert after["voiceapp_event_loop_lag_seconds_count",] > 0
    assert after["process_resident_memory_bytes",] > 50e6
    assert [name for name in after if name[0] == "voiceapp_build_info"]
    began, ended = (
        line for line in map(json.loads, product.log.splitlines()) if line["message"].startswith(f"session {row}")
    )
    known = {"session_id": row, "account": 1, "model": "voice", "transport": "websocket", "address": "127.0.0.1"}
    for line, said in ((began, "began"), (ended, "ended")):
        assert line["message"].startswith(f"session {row}: {said}, ")
        assert line.items() >= known.items()
        assert line["caller"].startswith("good (sk-")
    assert began["request_id"] == ended["request_id"]
    assert (ended["code"], ended["turns"]) == (1000, 1)
    assert ended["seconds"] > 0


def test_only_operators_read_them(product: Product) -> None:
    product.write("""update accounts_apikey set scopes = '["admin"]' where name = 'narrow'""")
    assert scrape(product, Authorization=f"Bearer {product.keys['narrow']}", **BEHIND_A_PROXY)
    assert scrape(product, Authorization="Bearer for-prometheus", **BEHIND_A_PROXY)
    for headers in ({}, *({"Authorization": f"Bearer {key}"} for key in (product.keys["good"], "", "for-prometheus2"))):
        with pytest.raises(urllib.error.HTTPError) as refused:
            scrape(product, **headers, **BEHIND_A_PROXY)
        assert refused.value.code == 401
        assert "voiceapp_" not in refused.value.read().decode()


@pytest.mark.parametrize("file", MONITORING, ids=lambda file: file.name)
def test_what_is_watched_exists(product: Product, file: Path) -> None:
    asked = set(re.findall(r"\b(?:voiceapp|process)_[a-z_]+", file.read_text()))
    with urllib.request.urlopen(f"{product.origin}/metrics", timeout=30) as response:
        shown = response.read().decode()
    known = set(re.findall(r"^# TYPE (\S+)", shown, re.MULTILINE))
    assert len(asked) >= 6
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked} <= known
