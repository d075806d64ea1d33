"""Spans of a conversation, as a collector receives them: OTLP over HTTP, in protobuf."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.schemas import Schemas

from tests.prepared import environment_of
from tests.realtime.chat_server import KEY, ChatServer
from tests.realtime.conftest import Serve
from tests.realtime.talker import call
from tests.serving import ROOT
from tests.web import Received, receiving
from voiceapp import tracing

ASKED = "the colour of the sky in Reykjavik"


@pytest.fixture
async def collector() -> AsyncIterator[Received]:
    async with receiving() as received:
        yield received


def spans(collector: Received) -> dict[str, Span]:
    """Spans by their names; of several of one name, the last."""
    requests = [ExportTraceServiceRequest.FromString(body) for body in collector.bodies]
    scopes = [scope for each in requests for resource in each.resource_spans for scope in resource.scope_spans]
    assert {scope.schema_url for scope in scopes} == {tracing.SCHEMA}
    return {span.name: span for scope in scopes for span in scope.spans}


def facts(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes}


@pytest.mark.parametrize("content", ["", "1"], ids=["without content", "with content"])
async def test_a_collector_sees_sessions_turns_stages_and_calls(
    serve: Serve, chat_server: ChatServer, collector: Received, content: str
) -> None:
    product = serve(
        CHAT_BASE_URL=chat_server.base_url,
        CHAT_API_KEY=KEY,
        CHAT_MODEL="bard",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.origin,
        OTEL_BSP_SCHEDULE_DELAY="50",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=content or "0",
    )
    async with call(product.url, product.keys["good"]) as talker:
        await talker.ask(f"Tell me {ASKED}.")
        await talker.wait("response.done")
    sent = await collector.wait_for(b"voiceapp.close_code")
    assert (ASKED.encode() in sent) is bool(content)
    found = spans(collector)
    session, turn, chat = found["session"], found["turn"], found["chat bard"]
    assert session.parent_span_id == b""
    assert turn.parent_span_id == session.span_id
    assert {chat.parent_span_id, found["first_token"].parent_span_id, found["speech en-us"].parent_span_id} == {
        turn.span_id
    }
    assert {span.trace_id for span in found.values()} == {session.trace_id}
    assert turn.start_time_unix_nano <= found["first_token"].start_time_unix_nano < turn.end_time_unix_nano
    row = await product.row("select id from realtime_realtimesession where ended_at is not null")
    assert facts(session)["gen_ai.conversation.id"] == row["id"]
    assert facts(session)["voiceapp.close_code"] == 1000
    assert facts(chat).items() >= {"gen_ai.operation.name": "chat", "gen_ai.request.model": "bard"}.items()
    names = set(re.findall(rb"gen_ai\.[a-z_.]+", sent))
    assert names <= {value.encode() for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    assert Schemas.V1_44_0.value == tracing.SCHEMA


def test_without_a_collector_nothing_is_imported_or_made(tmp_path: Path) -> None:
    program = (
        "import django, sys; django.setup(); import voiceapp.realtime.sockets, voiceapp.accounts.charges\n"
        "from voiceapp import tracing; tracing.prepare(); tracing.turn_ended(1, 2, {'first_token': 1})\n"
        "with tracing.session('s', 'r', model='m', transport='t'), tracing.call('chat', 'm') as span: pass\n"
        "print(span, [name for name in sys.modules if name.startswith('opentelemetry.sdk.trace')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment_of(tmp_path), capture_output=True, text=True
    )
    assert done.stdout == "None []\n", done.stderr
