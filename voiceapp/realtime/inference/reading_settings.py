"""The settings of a session that reads text aloud, as `session.update` changes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.reading import JsonObject
from voiceapp.protocol.speech_events import COMMIT, SERVER_COMMIT
from voiceapp.protocol.values import read_integer, read_number, read_text
from voiceapp.realtime.inference.speech import FORMATS, FULL_VOLUME, SpeechSettings, check_rate

USUAL = SpeechSettings(voice="", format="pcm", sample_rate_hz=24_000, rate=1.0, gain=1.0)


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """What a client sets of a session that reads text aloud."""

    mode: str = SERVER_COMMIT
    speech: SpeechSettings = USUAL

    def merged(self, given: JsonObject) -> ReadingSettings:
        """With the fields of a `session.update`; what is unknown among them is ignored.

        Raises:
            InvalidParameter: if one is of the wrong type or out of range.
        """
        mode = given.get("mode") or self.mode
        if mode not in (SERVER_COMMIT, COMMIT):
            raise InvalidParameter("session.mode must be server_commit or commit.", param="session.mode")
        changes: dict[str, Any] = {}
        if given.get("voice") is not None:
            changes["voice"] = read_text(given["voice"], "session.voice", limit=128)
        if (kind := given.get("response_format")) is not None:
            if kind not in FORMATS:
                message = f"session.response_format must be one of {', '.join(FORMATS)}."
                raise InvalidParameter(message, param="session.response_format")
            changes["format"] = kind
        if (rate_hz := given.get("sample_rate")) is not None:
            changes["sample_rate_hz"] = read_integer(rate_hz, "session.sample_rate", 8_000, 48_000)
        if (rate := given.get("speech_rate")) is not None:
            changes["rate"] = read_number(rate, "session.speech_rate", 0.5, 2.0)
        if (volume := given.get("volume")) is not None:
            changes["gain"] = read_number(volume, "session.volume", 0, 100) / FULL_VOLUME
        return ReadingSettings(str(mode), check_rate(replace(self.speech, **changes), "session.sample_rate"))
