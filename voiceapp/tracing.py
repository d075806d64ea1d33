"""Ids of the request and session at hand, which the log repeats, and OpenTelemetry spans.

The span of a session holds one for each of its turns, and that one its stages and the calls of models and tools. Names
follow the conventions for generative AI of `SCHEMA`. Unless OTEL_* names a collector, nothing of OpenTelemetry is
imported and no span is made. Spans are sent by a thread, from a bounded queue.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Span, TracerProvider

T = TypeVar("T")

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
CLOSE_S = 3.0
"""Longest wait for what was not sent yet, at the end of the process."""
LONGEST_CONTENT = 32_768
"""Characters of a message or reply in a span."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
session_id: ContextVar[str] = ContextVar("session_id", default="")

_session: ContextVar[Span | None] = ContextVar("session", default=None)
_turns: ContextVar[dict[int, Any]] = ContextVar("turns")
"""Reserved spans by ordinal: what belongs to a turn ends before it is known when the turn began."""
_parent: ContextVar[Any] = ContextVar("parent", default=None)
"""Span that new ones belong to."""
_span_id: ContextVar[int | None] = ContextVar("span_id", default=None)
"""Reserved for the span that is made next."""


@cache
def _provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_span_id(self) -> int:
            return _span_id.get() or super().generate_span_id()

    resource = Resource.create({"service.version": settings.VERSION})
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "voiceapp"}))
    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def prepare() -> None:
    """Import what spans need, which takes a while."""
    if settings.TRACING:
        _provider()


def close() -> None:
    """Send what waits; a collector that does not answer is not waited for."""
    if settings.TRACING:
        leaving = threading.Thread(target=_provider().shutdown, daemon=True)
        leaving.start()
        leaving.join(CLOSE_S)


def _start(name: str, parent: Any, attributes: Mapping[str, Any], **how: Any) -> Any:
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context

    context = Context() if parent is None else set_span_in_context(parent, Context())
    known = {key: value for key, value in attributes.items() if value not in (None, "")}
    tracer = _provider().get_tracer("voiceapp", settings.VERSION, schema_url=SCHEMA)
    return tracer.start_span(name, context, attributes=known, **how)


@contextmanager
def session(identifier: str, request: str, *, model: str, transport: str) -> Iterator[None]:
    """Within the block, lines of the log and spans belong to a session, and to the request that asked for it."""
    session_id.set(identifier)
    request_id.set(request)
    if not settings.TRACING:
        yield
        return
    named = {"gen_ai.conversation.id": identifier, "gen_ai.request.model": model, "voiceapp.transport": transport}
    span = _start("session", None, {**named, "voiceapp.request_id": request})
    _session.set(span)
    _parent.set(span)
    _turns.set({})
    try:
        yield
    finally:
        span.end()


def session_ended(close_code: int) -> None:
    if span := _session.get():
        span.set_attribute("voiceapp.close_code", close_code)


def belongs_to_turn(ordinal: int) -> None:
    """Let the calls of the running asyncio task belong to the turn that will have this ordinal."""
    if span := _session.get():
        from opentelemetry.trace import NonRecordingSpan, SpanContext

        if ordinal not in (turns := _turns.get()):
            known, new = span.get_span_context(), _provider().id_generator.generate_span_id()
            turns[ordinal] = NonRecordingSpan(SpanContext(known.trace_id, new, False, known.trace_flags))
        _parent.set(turns[ordinal])


def turn_ended(ordinal: int, lasted_ms: int, stages_ms: Mapping[str, int | None], **attributes: Any) -> None:
    """Make the spans of a turn and of its stages, which follow one another; the times count from its beginning."""
    if not (session := _session.get()):
        return
    end = time.time_ns()
    begin = end - max(lasted_ms, *(ms or 0 for ms in stages_ms.values())) * 1_000_000
    reserved = _turns.get().pop(ordinal, None)
    token = _span_id.set(reserved.get_span_context().span_id if reserved else None)
    named = {f"voiceapp.{name}": value for name, value in attributes.items()}
    span = _start("turn", session, {"voiceapp.turn": ordinal, **named}, start_time=begin)
    _span_id.reset(token)
    before = begin
    for stage, ms in stages_ms.items():
        if ms is not None:
            _start(stage, span, {}, start_time=before).end(before := begin + ms * 1_000_000)
    span.end(end)


_NOTHING: AbstractContextManager[None] = nullcontext()


def call(operation: str, subject: str, **attributes: Any) -> AbstractContextManager[Span | None]:
    """Around one call of a model, or of a tool (`execute_tool`); None while nothing is traced."""
    return _call(operation, subject, attributes) if settings.TRACING else _NOTHING


@contextmanager
def _call(operation: str, subject: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
    from opentelemetry.trace import SpanKind, StatusCode

    what = "gen_ai.tool.name" if operation == "execute_tool" else "gen_ai.request.model"
    named = {"gen_ai.operation.name": operation, "gen_ai.provider.name": "voiceapp", what: subject}
    named |= {"voiceapp.request_id": request_id.get(), **attributes}
    span = _start(f"{operation} {subject}".strip(), _parent.get(), named, kind=SpanKind.CLIENT)
    try:
        yield span
    except Exception as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        span.end()


def used(span: Span | None, quantities: Mapping[str, int]) -> None:
    """Note what a call has used, by unit."""
    if span is None:
        return
    for unit, quantity in quantities.items():
        span.set_attribute(f"{'gen_ai' if unit.endswith('_tokens') else 'voiceapp'}.usage.{unit}", quantity)


async def until_first(operation: str, subject: str, pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Pieces that a call makes; its span ends with the first, since the others are waited for as they are heard."""
    async with aclosing(pieces):
        with call(operation, subject):
            first = await anext(pieces, None)
        if first is not None:
            yield first
        async for piece in pieces:
            yield piece


class TracedChat:
    """A chat model whose calls are spans."""

    def __init__(self, chat: Any, name: str) -> None:
        self._chat = chat
        self._name = name

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        """See `ChatModel`."""
        written = ""
        with _call("chat", self._name, {}) as span:
            async with aclosing(self._chat.stream(request)) as deltas:
                async for delta in deltas:
                    written += delta.text
                    if usage := delta.usage:
                        used(span, {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
                    if delta.finish_reason:
                        span.set_attribute("gen_ai.response.finish_reasons", [delta.finish_reason])
                    yield delta
            if settings.TRACED_CONTENT:
                asked = [_message(message.role, message.content) for message in request.messages]
                for name, said in (("input", asked), ("output", [_message("assistant", written)])):
                    span.set_attribute(f"gen_ai.{name}.messages", json.dumps(said, ensure_ascii=False))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text[:LONGEST_CONTENT]}]}
