"""The task that transcribes recordings: one subtask for each, with its words as JSON and as subtitles."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import require_budget, require_model
from voiceapp.catalogue.lookup import catalogue
from voiceapp.errors import InvalidParameter
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.speech import subtitles, transcription
from voiceapp.speech.transcription import Transcript
from voiceapp.tasks.kinds import PartResult, Payload
from voiceapp.tasks.storage.inputs import check_sources, fetched
from voiceapp.tasks.work.context import TaskContext
from voiceapp.tasks.work.retries import with_patience

MAX_FILES = 100
MAX_FILE_BYTES = 200_000_000
MAX_AUDIO_S = 4 * 3600.0
"""Recognized in time where that goes twice as fast as speech; a core alone is about forty times as fast."""


Address = Annotated[CleanStr, Field(max_length=2048)]


class Recordings(Schema):
    file_urls: Annotated[list[Address], Field(min_length=1, max_length=MAX_FILES)] | None = None
    """Addresses of recordings, by http or https: wav, mp3, m4a, mp4, aac, ogg, opus, flac or webm, up to 4 hours and
    200 MB each."""
    file_url: Address | None = None
    """The same for a single one, in the place of `file_urls`; its links stand in `result` as well."""


class Hearing(Schema):
    language_hints: list[CleanStr] | None = None
    """Languages that may be spoken, as ISO 639-1 codes; the first one that the model understands counts."""


class TranscriptionBody(Schema):
    model: CleanStr
    """Such as `paraformer-v2`."""
    input: Recordings
    parameters: Hearing | None = None


class FileTranscription:
    """A `Kind`."""

    path = "audio/asr/transcription"
    title = "Transcribe recordings"
    description = (
        "One subtask for each recording. Each result has links to the words as JSON (`transcription_url`), as SubRip "
        "(`srt_url`) and as WebVTT (`vtt_url`). Times are of stretches of speech; those of single words are not known."
    )
    body = TranscriptionBody
    time_limit_s = 2 * 3600.0
    max_attempts = 3
    parallel = 1
    has_results = True

    async def accept(self, caller: Caller, body: TranscriptionBody) -> Payload:
        card = catalogue().get(body.model, "asr")
        require_model(caller, card.name, "asr")
        await require_budget(caller, card.name, "asr", audio_seconds=1)
        single = body.input.file_url
        urls = body.input.file_urls or ([single] if single else [])
        if not urls:
            raise InvalidParameter("input.file_urls is required.", param="input.file_urls")
        await check_sources(caller, urls)
        hints = (body.parameters and body.parameters.language_hints) or []
        language = transcription.language_of(body.model, hints)
        return Payload(
            body.model,
            [{"file_url": url} for url in urls],
            {"language": language, "file_urls": urls} | ({} if body.input.file_urls else {"is_single": True}),
        )

    async def run(self, part: TaskContext) -> PartResult:
        url = str(part.order["file_url"])
        file = await fetched(part, url, max_bytes=MAX_FILE_BYTES)
        part.progress(0.1)
        heard: Transcript = await with_patience(lambda: self._hear(part, file))
        duration_s = math.ceil(heard.duration_s)
        return PartResult(
            {
                "file_url": url,
                "transcription_url": await _kept(
                    part, "transcript.json", json.dumps(written(url, heard)), "application/json"
                ),
                "srt_url": await _kept(part, "transcript.srt", subtitles.srt(heard), "application/x-subrip"),
                "vtt_url": await _kept(part, "transcript.vtt", subtitles.vtt(heard), "text/vtt"),
                "subtask_status": "SUCCEEDED",
            },
            {"duration": duration_s},
        )

    def output(self, task: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        failed = [{"file_url": url, "subtask_status": "FAILED"} for url in task["file_urls"]]
        whole = [{**blank, **result} for blank, result in zip(failed, results, strict=True)]
        is_alone = task.get("is_single") and whole[0]["subtask_status"] == "SUCCEEDED"
        return {"results": whole} | ({"result": whole[0]} if is_alone else {})

    async def _hear(self, part: TaskContext, file: Path) -> Transcript:
        with file.open("rb") as source:
            pieces = transcription.segments(
                part.caller,
                part.model,
                source,
                language=part.common.get("language"),
                request_id=part.charge_id,
                max_s=MAX_AUDIO_S,
                in_turn=with_patience,
                is_charged_first=False,
            )
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, Transcript):
                        return piece
                    part.progress(0.1 + 0.9 * piece.end_s / piece.of_s)
        raise AssertionError("the last piece is the transcript")


def written(url: str, heard: Transcript) -> dict[str, Any]:
    """A transcript as clients of the hosted service read it; times in milliseconds."""
    return {
        "file_url": url,
        "properties": {"original_duration_in_milliseconds": round(heard.duration_s * 1000)},
        "transcripts": [
            {
                "channel_id": 0,
                "content_duration_in_milliseconds": round(
                    sum(segment.end_s - segment.start_s for segment in heard.segments) * 1000
                ),
                "text": heard.text,
                "sentences": [
                    {
                        "sentence_id": number,
                        "begin_time": round(segment.start_s * 1000),
                        "end_time": round(segment.end_s * 1000),
                        "text": segment.text,
                    }
                    for number, segment in enumerate(heard.segments)
                ],
            }
        ],
    }


async def _kept(part: TaskContext, name: str, text: str, content_type: str) -> dict[str, str]:
    path = part.folder / name
    path.write_text(text, encoding="utf-8")
    return await part.keep(path, content_type)
