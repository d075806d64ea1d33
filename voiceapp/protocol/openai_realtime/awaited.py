"""Results that a session at a service of OpenAI's family waits for before it ends."""

from __future__ import annotations

from collections import OrderedDict

from voiceapp.protocol.wire.reading import JsonObject

MOST = 32
"""Limit of each kind."""


class Awaited:
    """Commits, responses and words of one session. Whatever is told twice or never does no harm but to the end."""

    def __init__(self) -> None:
        self.has_uncommitted = False
        """The caller has sent audio since it was last committed or cleared."""
        self.is_speaking = False
        """The service hears the caller speak, or has not committed what was said."""
        self._commits: OrderedDict[str, None] = OrderedDict()
        """Commits by the id of the event that asks for one."""
        self._responses: OrderedDict[str, None] = OrderedDict()
        """Responses that do not exist yet, by the id of the event that asks for one or of the item that is to be
        answered."""
        self._begun: OrderedDict[str, None] = OrderedDict()
        self._words: OrderedDict[str, None] = OrderedDict()
        """Transcripts that are not complete, by id of the item."""

    def __bool__(self) -> bool:
        return bool(self._commits or self._responses or self._begun or self._words)

    def clear(self) -> None:
        for each in (self._commits, self._responses, self._begun, self._words):
            each.clear()

    def commit_asked(self, event_id: str) -> None:
        self.has_uncommitted = self.is_speaking = False
        _add(self._commits, event_id)

    def committed(self, item_id: str, *, words: bool, response: bool) -> None:
        """Audio has become an item, and `words` or a `response` are to come."""
        self.has_uncommitted = self.is_speaking = False
        _pop_first(self._commits)
        if words:
            _add(self._words, item_id)
        if response:
            _add(self._responses, item_id)

    def cleared(self) -> None:
        self.has_uncommitted = self.is_speaking = False

    def words_known(self, item_id: str, *, are_any: bool) -> None:
        """The words of an item; without any, some services give no response."""
        self._words.pop(item_id, None)
        if not are_any:
            self._responses.pop(item_id, None)

    def response_asked(self, event_id: str) -> None:
        _add(self._responses, event_id)

    def response_begun(self, response_id: str) -> None:
        """A response exists, which is most likely the one that was asked for first."""
        _pop_first(self._responses)
        _add(self._begun, response_id)

    def response_done(self, response_id: str) -> None:
        if self._begun.pop(response_id, 0) == 0:  # its beginning was not told
            _pop_first(self._responses)

    def refused(self, error: JsonObject) -> None:
        about, code, param = error.get("event_id"), str(error.get("code")), str(error.get("param"))
        if isinstance(about, str):
            self._commits.pop(about, None)
            self._responses.pop(about, None)
        elif code.startswith("input_audio_buffer_commit"):
            _pop_first(self._commits)
        elif param.partition(".")[0] == "response" or ("response" in code and "cancel" not in code):
            _pop_first(self._responses)


def _add(known: OrderedDict[str, None], name: str) -> None:
    known[name] = None
    while len(known) > MOST:
        known.popitem(last=False)


def _pop_first(known: OrderedDict[str, None]) -> None:
    if known:
        known.popitem(last=False)
