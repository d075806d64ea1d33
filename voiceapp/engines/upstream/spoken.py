"""What a service elsewhere writes in one session, as responses that are spoken here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from voiceapp.engines.interfaces import Call, ChatDelta, Synthesizer, ToolCallDelta
from voiceapp.engines.reply import ReplyPipeline
from voiceapp.engines.upstream.amendments import Amendments, Replies
from voiceapp.engines.upstream.fields import (
    message_id_of,
    object_of,
    output_index_of,
    response_id_of,
)
from voiceapp.engines.upstream.measures import count_tokens, timed
from voiceapp.engines.upstream.written import WrittenReply
from voiceapp.errors import EngineUnavailable
from voiceapp.formats import identifier
from voiceapp.protocol import events as ev
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.reading import JsonObject
from voiceapp.protocol.responding import Responder
from voiceapp.protocol.response import Response
from voiceapp.protocol.work import OfReply, ReplyCall, ReplyEnded, ReplyFailed, Respond, Result, Work

WORDS = (ev.TextDelta.type, ev.AudioTranscriptDelta.type)
FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
OF_OUTPUT = ("response.", "conversation.item.created", "conversation.item.deleted", "error")
"""How the events begin that can be about a response, or about what was told of one."""


class SpokenResponses:
    """The responses of one session, one at a time."""

    def __init__(
        self,
        call: Call,
        synthesizer: Synthesizer,
        tasks: asyncio.TaskGroup,
        *,
        say: Callable[[JsonObject], None],
        tell: Callable[[JsonObject], None],
        changed: Callable[[], None],
    ) -> None:
        """`say` takes each event for the caller and `tell` each for the service; `changed` is called when `due_at` may
        be another."""
        self._call = replace(call, before_response=None, next_task_end=None)
        self._synthesizer = synthesizer
        self._tasks = tasks
        self._say = say
        self._changed = changed
        self._now = asyncio.get_running_loop().time
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._written = WrittenReply()
        self._amendments = Amendments(tell)
        self._response_id = ""
        self._is_writing = False
        """The latest response is written on: the service has not ended it, and was not told to."""
        self._has_ended = True
        """The service has ended the latest response."""
        self._is_unheard = False
        """The latest response was cut off before its first words were said here."""
        self._is_unknown = False
        """The latest response was written in another session, and the one in use does not know of it."""
        self._replies = Replies()
        self._message_id = ""
        self._calls: dict[int, str] = {}
        """Ids of items, by the number of the function call."""
        self._item_id = ""
        """Of the item that begins next."""
        self._metrics: JsonObject = {}
        """The service's own, of the latest response."""
        self._conversation = Conversation()
        """What the response under way is written into; the service keeps the whole one."""
        self._responder = Responder(
            self._conversation, send=self._send, start=self._start, cut=lambda: None, new_id=self._new_id
        )

    @property
    def is_live(self) -> bool:
        """A response is under way."""
        return self._responder.live is not None

    @property
    def is_writing(self) -> bool:
        """More of the latest response is to come."""
        return self._is_writing

    @property
    def due_at(self) -> float | None:
        """When there is something to say."""
        live = self._responder.live
        return live.playout.next_due() if live is not None else None

    # ── What the caller does ─────────────────────────────────────────────────────────────────────────────────────────

    def require_free(self) -> None:
        """Check that a response may begin.

        Raises:
            RemoteProtocolError: if one is under way.
        """
        self._responder.require_free(is_speech_open=False)

    def cancel_on_request(self, response_id: str | None, now: float) -> None:
        """Stop the response under way.

        Raises:
            RemoteProtocolError: if it is another one.
        """
        self._responder.cancel_on_request(response_id, now)

    def interrupt(self, now: float) -> None:
        """The caller begins to speak."""
        live = self._responder.live
        if live is not None and live.config.speaks:
            self._responder.cancel("turn_detected", now)

    def truncate(self, wire: JsonObject, now: float) -> bool:
        """Keep of one of the latest replies what was heard; False where it is about something else."""
        item, heard_ms = self._replies.find(wire.get("item_id")), wire.get("audio_end_ms")
        if item is None or not item.spoken or not isinstance(heard_ms, int):
            return False
        live = self._responder.live
        if live is not None and live.message is item:
            self._responder.cancel("client_cancelled", now)
        item.cut(heard_ms)
        self._send(
            ev.ItemTruncated(
                item_id=item.id, content_index=0, audio_end_ms=heard_ms, transcript=item.text, unheard=item.unheard
            )
        )
        return True

    # ── What the service does ────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, wire: JsonObject, config: SessionConfig, now: float, *, is_apart: bool) -> None:
        """The service begins a response; `is_apart`: one out of band was asked for. Many services name no conversation
        in any response, but one that has a conversation is not out of band."""
        response = wire.get("response")
        about = response if isinstance(response, dict) else {}
        self._response_id = str(about.get("id"))
        self._message_id, self._calls, self._metrics = "", {}, {}
        self._written, self._is_writing = WrittenReply(), True
        self._has_ended = self._is_unheard = self._is_unknown = False
        self._conversation.items.clear()
        is_apart = is_apart and not isinstance(about.get("conversation_id"), str)
        self._responder.begin(config, now, context=Conversation() if is_apart else None)
        self._responder.generate(None)

    def owns(self, wire: JsonObject) -> bool:
        """Whether an event of the service's is part of the latest response."""
        kind, item = wire["type"], wire.get("item")
        if kind == ev.ItemCreated.type:
            return isinstance(item, dict) and item.get("id") in (self._message_id, *self._calls.values())
        is_within = kind.startswith("response.") and kind != ev.ResponseCreated.type
        return is_within and response_id_of(wire) == self._response_id

    def end_writing(self) -> None:
        """The service will write no more of the latest response, and not say so."""
        if self._is_writing:
            self._is_writing = False
            self._written.push(ChatDelta(finish_reason="stop"))

    def takes(self, wire: JsonObject, now: float) -> bool:
        """Whether an event of the service's is dealt with here."""
        kind = wire["type"]
        if not kind.startswith(OF_OUTPUT):
            return False
        if self._amendments.answered(wire):
            return True
        is_own = self.owns(wire)
        if kind == ev.ItemCreated.type:
            if is_own:
                self._amendments.place(str(wire["item"]["id"]), wire.get("previous_item_id"))
            return is_own
        if not kind.startswith("response."):
            return False
        if is_own:
            self._follow(kind, wire, now)
        return True

    def _follow(self, kind: str, wire: JsonObject, now: float) -> None:
        if kind == ev.OutputItemAdded.type and isinstance(wire.get("item"), dict):
            self._note_item(wire)
        elif kind in WORDS and isinstance(wire.get("delta"), str):
            self._message_id = self._message_id or str(wire.get("item_id"))
            self._written.push(ChatDelta(text=wire["delta"]))
        elif kind == ev.FunctionArgumentsDone.type:
            call_id, name, arguments = (str(wire.get(of) or "") for of in ("call_id", "name", "arguments"))
            call = ToolCallDelta(output_index_of(wire), call_id, name, arguments)
            self._calls[call.index] = str(wire.get("item_id"))
            self._written.push(ChatDelta(tool_call=call))
        elif kind == ev.ResponseDone.type and isinstance(wire.get("response"), dict):
            self._end(wire["response"], now)

    def _note_item(self, wire: JsonObject) -> None:
        item = wire["item"]
        if item.get("type") == "function_call":
            self._calls[output_index_of(wire)] = str(item.get("id"))
        elif item.get("type") == "message":
            self._message_id = self._message_id or str(item.get("id"))

    def _end(self, response: JsonObject, now: float) -> None:
        """The service has written all it will."""
        was_writing, self._is_writing, self._has_ended = self._is_writing, False, True
        self._message_id = self._message_id or message_id_of(response)
        self._forget_unheard()
        status, details = response.get("status"), object_of(response.get("status_details"))
        reason = str(details.get("reason") or "")
        self._metrics = object_of(response.get("metrics"))
        live = self._responder.live
        if live is not None:  # at once: who interrupts a reply that is written has used its tokens
            count_tokens(live, object_of(response.get("usage")))
        if not was_writing:  # it was cancelled from here, where what is spoken ends by itself
            return
        if status == "cancelled":
            self._responder.cancel(reason or "turn_detected", now)
        elif status == "failed":
            self._written.fail(EngineUnavailable("The service that runs this model did not complete the response."))
        else:
            self._written.push(ChatDelta(finish_reason=FINISH_REASONS.get(reason, "stop")))

    # ── Speaking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, now: float, *, is_hurried: bool) -> None:
        """Say what is due."""
        self._responder.advance(now, is_hurried=is_hurried)
        self._heed_room()

    def _heed_room(self) -> None:
        """Let the voice go on only while what it says has room."""
        live = self._responder.live
        if live is not None and live.playout.has_room:
            self._room.set()
        else:
            self._room.clear()

    def stop(self) -> None:
        """Stop speaking, and say nothing of it."""
        if self._task is not None:
            self._task.cancel()

    def _start(self, work: Work) -> None:
        if not isinstance(work, Respond):
            self._abandon()
            return
        pipeline = ReplyPipeline(
            self._call,
            chat=self._written,
            synthesizer=self._synthesizer,
            done=self._done,
            room=self._room,
            turns=lambda: 0,
            reminders=lambda: (),
        )
        self._task = self._tasks.create_task(pipeline.respond(work), name=f"speak {work.response_id}")

    def _abandon(self) -> None:
        self.stop()
        self._stop_writing()

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self._amendments.tell_of({"type": ev.ResponseCancel.type, "response_id": self._response_id})

    def _done(self, result: Result) -> None:
        """A result of the pipeline: more words, calls or sound of the reply, or its end."""
        assert isinstance(result, OfReply)
        self._item_id = self._message_id
        if isinstance(result, ReplyCall):
            self._item_id = self._calls.get(result.index, "")
        elif isinstance(result, ReplyEnded | ReplyFailed):
            self._stop_writing()
        self._responder.take(result, self._now())
        self._heed_room()
        self._changed()

    def _new_id(self, of: str) -> str:
        ids = {"resp": self._response_id, "item": self._item_id}
        return ids.get(of) or identifier(of)

    def _send(self, event: ev.ServerEvent) -> None:
        wire = replace(event, event_id=identifier("event")).to_wire()
        if isinstance(event, ev.ItemCreated):
            assert self._responder.response is not None
            self._replies.remember(self._responder.response.message)
            before = self._amendments.place_of(str(event.item.get("id")))
            if before is not None:
                wire["previous_item_id"] = before
        elif isinstance(event, ev.ResponseDone):
            self._responder.turn_log.take()  # whoever uses the line keeps its own
            response = self._responder.response
            assert response is not None
            wire["response"] = {**event.response, "metrics": timed(response, self._metrics)}
            self._amend(response, event.response)
        elif isinstance(event, ev.ItemTruncated):
            self._amendments.keep(event.item_id, event.transcript)
        self._say(wire)

    def _amend(self, response: Response, ended: JsonObject) -> None:
        """A response has ended here: what the service has to be told of that."""
        if response.is_out_of_band:
            return
        if self._is_unknown:
            self._is_unknown = False
            for item in ended["output"]:
                self._amendments.add(item)
        elif ended["status"] == "cancelled" and response.message is None:
            self._is_unheard = True
            self._forget_unheard()

    def _forget_unheard(self) -> None:
        """Have the service forget a reply of which nothing was said, as soon as it writes no more of it."""
        if self._is_unheard and self._has_ended and self._message_id:
            self._is_unheard = False
            self._amendments.keep(self._message_id, "")

    # ── From one session to the next ─────────────────────────────────────────────────────────────────────────────────

    def go_on_from(self, before: SpokenResponses) -> None:
        """Know the replies of the session before."""
        self._replies = before._replies

    def move(
        self, *, say: Callable[[JsonObject], None], tell: Callable[[JsonObject], None], changed: Callable[[], None]
    ) -> None:
        """Speak on in another session with the service, which is told of the response when it has ended."""
        self._say, self._changed = say, changed
        self._amendments = Amendments(tell)
        self._is_unknown = self.is_live
