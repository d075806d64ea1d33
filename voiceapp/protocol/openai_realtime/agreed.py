"""The settings of a session at a service of OpenAI's family, as far as the service has agreed to what it was asked."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass

from voiceapp.errors import InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol.audio import AudioFormat
from voiceapp.protocol.configuration import SessionConfig, merge
from voiceapp.protocol.openai_realtime.asking import format_there
from voiceapp.protocol.openai_realtime.hearing import format_of, is_about_settings, settings_after
from voiceapp.protocol.openai_realtime.settings import PCM_RATE_HZ
from voiceapp.protocol.wire.reading import JsonObject

MAX_UPDATES = 32
"""Changes that may wait for the service's answer."""


@dataclass(slots=True)
class _Update:
    """A change that the service has not answered."""

    about: str | None
    """The caller's id of it."""
    patch: JsonObject
    before: tuple[SessionConfig, AudioFormat, AudioFormat]
    """The settings and the service's formats without it."""


class AgreedSettings:
    """Settings of one session. A change counts from when it is asked for until it is refused."""

    def __init__(self, config: SessionConfig) -> None:
        self.config = config
        self.source = self.sink = AudioFormat("pcm16", PCM_RATE_HZ)
        self._updates: OrderedDict[str, _Update] = OrderedDict()

    def change(self, patch: JsonObject, about: str | None) -> str:
        """The id under which the service is to be asked for a change; `about` is the caller's.

        Raises:
            InvalidParameter: if there is no such setting; nothing has changed then.
        """
        update = _Update(about, patch, self._all)
        self._apply(update)
        self._updates[update_id := identifier("event")] = update
        while len(self._updates) > MAX_UPDATES:
            self._updates.popitem(last=False)
        return update_id

    def take(self, session: JsonObject, *, is_answer: bool) -> SessionConfig:
        """Our settings after what the service shows, which as an answer is about the oldest change."""
        if is_answer and self._updates:
            self._updates.popitem(last=False)
        if self._updates:  # what is shown knows nothing of the others
            self._return_to_oldest()
        self.source, self.sink = format_of(session, "input", self.source), format_of(session, "output", self.sink)
        self.config = shown = settings_after(self.config, session)
        self._apply_pending()
        return shown

    def refused(self, error: JsonObject) -> str | None:
        """Our id of the change that an error refuses, if it does."""
        about = error.get("event_id")
        if about is None and is_about_settings(error):
            return next(iter(self._updates), None)
        return about if isinstance(about, str) and about in self._updates else None

    def take_back(self, update_id: str) -> str | None:
        """Forget this change, and none after it; the caller's id of it."""
        self._return_to_oldest()
        refused = self._updates.pop(update_id)
        self._apply_pending()
        return refused.about

    @property
    def _all(self) -> tuple[SessionConfig, AudioFormat, AudioFormat]:
        return self.config, self.source, self.sink

    def _return_to_oldest(self) -> None:
        self.config, self.source, self.sink = next(iter(self._updates.values())).before

    def _apply_pending(self) -> None:
        for update in self._updates.values():
            with suppress(InvalidParameter):  # it was read with a change that was refused since
                self._apply(update)

    def _apply(self, update: _Update) -> None:
        update.before = self._all
        self.config = merge(self.config, update.patch)
        self.source, self.sink = format_there(self.config.input_format), format_there(self.config.output_format)
