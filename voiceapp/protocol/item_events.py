"""Client events about items: created, retrieved, deleted, truncated; and the words of items that bring audio."""

from __future__ import annotations

from collections.abc import Callable

from voiceapp.errors import InvalidParameter, RemoteProtocolError
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig
from voiceapp.protocol.conversation import Conversation
from voiceapp.protocol.hearing.listening import Listener
from voiceapp.protocol.items import FunctionOutput, ItemStatus, McpItem, Message, Role, read_item
from voiceapp.protocol.speaking.responding import Responder
from voiceapp.protocol.wire import events as ev
from voiceapp.protocol.work import ItemRecognitionFailed, ItemRecognized, ListTools, RecognizeItem, ToolsListed, Work


class ItemEvents:
    """The items of one session, as its client changes them."""

    def __init__(
        self,
        conversation: Conversation,
        responder: Responder,
        listener: Listener,
        *,
        send: Callable[[ev.ServerEvent], None],
        start: Callable[[Work], None],
        new_id: Callable[[str], str],
    ) -> None:
        self._conversation = conversation
        self._responder = responder
        self._listener = listener
        self._send = send
        self._start = start
        self._new_id = new_id
        self._unrecognized: set[str] = set()
        self._servers: set[str] = set()
        """Labels of the servers whose tools were listed."""

    @property
    def is_settled(self) -> bool:
        """The words of every item that brought audio are known."""
        return not self._unrecognized

    def close(self) -> None:
        """Words that come from now on are ignored."""
        self._unrecognized.clear()

    def create(self, event: ev.ItemCreate, input_format: AudioFormat) -> None:
        """Add an item; `input_format` is that of its audio.

        Raises:
            InvalidParameter: if the item cannot be read, or its id is taken.
        """
        item, audio = read_item(event.item, self._new_id("item"))
        if self._listener.holds(item.id):
            raise InvalidParameter("This is the id of what the caller is saying.", param="item.id")
        if isinstance(item, McpItem):
            asked = self._conversation.find(item.fields["approval_request_id"])
            if not isinstance(asked, McpItem) or asked.kind != "mcp_approval_request":
                raise InvalidParameter("This item asked for no approval.", param="item.approval_request_id")
            self._responder.owes_response = True
        before = self._conversation.add(item, event.previous_item_id)
        self._send(ev.ItemCreated(item=item.to_wire(), previous_item_id=before))
        if isinstance(item, FunctionOutput):
            self._responder.calls.answered(item.call_id)
        if audio is not None:
            self._unrecognized.add(item.id)
            self._start(RecognizeItem(item.id, audio, input_format))

    def retrieve(self, event: ev.ItemRetrieve) -> None:
        """Send an item as it is now.

        Raises:
            InvalidParameter: if the conversation does not have it.
        """
        self._send(ev.ItemRetrieved(item=self._conversation.find(event.item_id).to_wire()))

    def delete(self, event: ev.ItemDelete) -> None:
        """Remove an item.

        Raises:
            InvalidParameter: if the conversation does not have it.
            RemoteProtocolError: if the response under way is writing it.
        """
        item = self._conversation.find(event.item_id)
        live = self._responder.live
        if live and live.owns(item):
            raise RemoteProtocolError(
                "This item is being written; cancel the response first.", code="item_in_progress", param="item_id"
            )
        self._conversation.remove(item)
        self._send(ev.ItemDeleted(item_id=item.id))

    def truncate(self, event: ev.ItemTruncate, now: float) -> None:
        """Keep of a spoken reply only what was heard, and end it if it is still under way.

        Raises:
            InvalidParameter: if the item is not a spoken reply.
        """
        item = self._conversation.find(event.item_id)
        if not isinstance(item, Message) or item.role is not Role.ASSISTANT or not item.spoken:
            raise InvalidParameter("Only a spoken reply can be truncated.", param="item_id")
        if event.content_index != 0:
            raise InvalidParameter("content_index must be 0.", param="content_index")
        if self._responder.response and self._responder.response.message is item:
            self._responder.cancel("client_cancelled", now)
        item.cut(event.audio_end_ms)
        self._send(
            ev.ItemTruncated(
                item_id=item.id,
                content_index=0,
                audio_end_ms=event.audio_end_ms,
                transcript=item.text,
                unheard=item.unheard,
            )
        )
        self._responder.turn_log.truncated(item)

    def list_tools(self, config: SessionConfig) -> None:
        """Show the client, once, which tools each server has that it names."""
        named = [tool["server_label"] for tool in config.tools if tool["type"] == "mcp"]
        for label in dict.fromkeys(named):
            if label not in self._servers:
                self._servers.add(label)
                item_id = self._new_id("mcpl")
                self._send(ev.McpListBegun(item_id=item_id))
                self._start(ListTools(item_id, label))

    def listed(self, result: ToolsListed) -> None:
        item = McpItem(
            result.work.item_id,
            "mcp_list_tools",
            {"server_label": result.work.server_label, "tools": result.tools or []},
            ItemStatus.INCOMPLETE if result.tools is None else ItemStatus.COMPLETED,
        )
        self._send(ev.ItemCreated(item=item.to_wire(), previous_item_id=self._conversation.add(item)))
        event = ev.McpListFailed if result.tools is None else ev.McpListCompleted
        self._send(event(item_id=item.id))

    def take(self, result: ItemRecognized | ItemRecognitionFailed, now: float) -> None:
        """The words of an item that brought audio; those that come too late are ignored."""
        if result.item_id not in self._unrecognized:
            return
        self._unrecognized.remove(result.item_id)
        if isinstance(result, ItemRecognized):
            self.write_words(result.item_id, result.words)
        else:
            self.say_words_failed(result.item_id, result.code, result.message)
            self._responder.words_failed(result.code, result.message, now)

    def write_words(self, item_id: str, words: str, language: str | None = None) -> bool:
        """Put recognised words into their item; False when it was deleted meanwhile."""
        try:
            item = self._conversation.find(item_id)
        except InvalidParameter:
            return False
        if isinstance(item, Message):
            item.text = words
        self._send(ev.TranscriptionCompleted(item_id=item_id, transcript=words, language=language or "en"))
        return True

    def say_words_failed(self, item_id: str, code: str, message: str) -> None:
        """Tell the client that an item's words will never be known."""
        error = {"type": "server_error", "code": code, "message": message}
        self._send(ev.TranscriptionFailed(item_id=item_id, error=error))
