"""The OpenAI-compatible operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import File, Form, Path, Router, UploadedFile

from voiceapp.compatible import models
from voiceapp.compatible.audio_events import speech_events, transcript_events, whole_or_nothing
from voiceapp.compatible.audio_schemas import SpeechBody, Transcription, TranscriptionForm, TranslationForm
from voiceapp.compatible.chat import CompatibleResponse, call_of
from voiceapp.compatible.responses.api import caller_of
from voiceapp.compatible.responses.api import router as responses
from voiceapp.compatible.schemas import Completion, CompletionBody, ModelEntry, ModelList
from voiceapp.errors import InvalidParameter
from voiceapp.generation.chat import answer
from voiceapp.generation.stream import EVENTS, StreamedResponse, begun, compact
from voiceapp.http.schemas import CleanStr
from voiceapp.http.served_by import noting
from voiceapp.speech import subtitles, synthesis, transcription
from voiceapp.speech.transcription import Transcript

router = Router(tags=["OpenAI-compatible"])
router.add_router("", responses)

EVENT_STREAM = "text/event-stream; charset=utf-8"
TEXT: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
BINARY = {"schema": {"type": "string", "format": "binary"}}
STREAMED = {"responses": {200: {"content": EVENTS}}}
TRANSCRIBED = {"responses": {200: {"content": EVENTS | TEXT}}}
SPOKEN = {
    "responses": {200: {"content": EVENTS | {media: BINARY for media in synthesis.MEDIA_TYPES.values()}}},
}
PLAIN: dict[str, Callable[[Transcript], str]] = {
    "text": lambda transcript: f"{transcript.text}\n",
    "srt": subtitles.srt,
    "vtt": subtitles.vtt,
}
"""Forms of a transcript that are no JSON."""


@router.post(
    "/chat/completions", summary="Answer a conversation, OpenAI style", response=Completion, openapi_extra=STREAMED
)
async def create_completion(request: HttpRequest, body: CompletionBody) -> HttpResponseBase:
    """The same as the native operation, for the `openai` libraries; with `stream`, as events ended by `[DONE]`."""
    caller = caller_of(request)
    pieces = answer(caller, call_of(body), request_id=request.request_id, note=noting(request))
    writer = CompatibleResponse(body, request)
    if body.stream:
        return StreamedResponse(writer.chunks(await begun(pieces)), EVENT_STREAM)
    return HttpResponse(await writer.completion(pieces), content_type="application/json")


@router.get("/models", summary="List the models", response=ModelList, exclude_none=True)
async def list_models(request: HttpRequest) -> ModelList:
    """Every name that this key may ask for, with those that client programs have built in, and what each can do."""
    return ModelList(data=await models.visible(caller_of(request)))


@router.get("/models/{path:model}", summary="Look at a model", response=ModelEntry, exclude_none=True)
async def retrieve_model(request: HttpRequest, model: Path[CleanStr]) -> ModelEntry:
    """One of the names in the list."""
    return await models.one(caller_of(request), model)


@router.post(
    "/audio/transcriptions", summary="Transcribe a recording", response=Transcription, openapi_extra=TRANSCRIBED
)
async def create_transcription(
    request: HttpRequest, file: File[UploadedFile], form: Form[TranscriptionForm]
) -> HttpResponseBase:
    """The words of a recording of up to 15 minutes: wav, mp3, m4a, mp4, aac, ogg, opus, flac or webm.

    Times are of stretches of speech between pauses; those of single words are not known, and asking for them is
    refused.
    """
    caller = caller_of(request)
    _refuse_word_times(request)
    pieces = transcription.in_request(
        caller,
        form.model,
        file.file,
        language=form.language or None,
        terms=form.terms,
        request_id=request.request_id,
        note=noting(request),
    )
    if (form.stream or "").lower() == "true":
        return StreamedResponse(transcript_events(request, await begun(pieces)), EVENT_STREAM)
    return _written(await transcription.transcript(pieces), form)


@router.post(
    "/audio/translations",
    summary="Translate a recording into English",
    response=Transcription,
    openapi_extra={"responses": {200: {"content": TEXT}}},
)
async def create_translation(
    request: HttpRequest, file: File[UploadedFile], form: Form[TranslationForm]
) -> HttpResponse:
    """Translate a recording of up to 15 minutes into English, where the server understands other languages."""
    pieces = transcription.in_request(
        caller_of(request),
        form.model,
        file.file,
        language=None,
        translates=True,
        request_id=request.request_id,
        note=noting(request),
    )
    return _written(await transcription.transcript(pieces), form)


def _written(transcript: Transcript, form: TranslationForm) -> HttpResponse:
    if form.response_format in PLAIN:
        return HttpResponse(PLAIN[form.response_format](transcript), content_type="text/plain; charset=utf-8")
    shape = subtitles.verbose if form.response_format == "verbose_json" else subtitles.brief
    return HttpResponse(compact(shape(transcript)), content_type="application/json")


@router.post("/audio/speech", summary="Speak a text", response=None, openapi_extra=SPOKEN)
async def create_speech(request: HttpRequest, body: SpeechBody) -> HttpResponseBase:
    """A file of speech, sent while it is spoken."""
    spoken = synthesis.speak(caller_of(request), body.call(), request_id=request.request_id, note=noting(request))
    sound = await begun(spoken)
    if body.stream_format == "sse":
        return StreamedResponse(speech_events(request, sound, len(body.input)), EVENT_STREAM)
    return StreamedResponse(whole_or_nothing(request, sound), synthesis.MEDIA_TYPES[body.response_format])


def _refuse_word_times(request: HttpRequest) -> None:
    """Refuse what no engine here measures.

    Raises:
        InvalidParameter: if times of single words are asked for.
    """
    for name in ("timestamp_granularities[]", "timestamp_granularities"):
        if "word" in request.POST.getlist(name):
            raise InvalidParameter(f"{name}: times of single words are not known here; segment is.", param=name)
