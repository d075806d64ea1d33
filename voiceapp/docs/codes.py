"""Refusals and close codes: their meaning, and what a program does about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from voiceapp.http.error_responses import compatible_code, written_code
from voiceapp.realtime import close_codes

from .writing import to_inline_html


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    meaning: str
    remedy: str
    """Advice in Markdown."""
    status: str = ""
    """HTTP status, where the code comes with one."""
    compatible: str = ""
    """The code in OpenAI's style."""
    events: tuple[str, ...] = ()
    """The client's events that can get it; empty for errors of no event."""

    @property
    def remedy_html(self) -> SafeString:
        return to_inline_html(self.remedy)


AGAIN = "Try again after `Retry-After` seconds, later each time."
CORRECT = "Correct what the message names; the same request fails again."


def _refusal(code: str, status: str, meaning: str, remedy: str) -> Code:
    return Code(code, meaning, remedy, status, compatible_code(code))


REFUSALS = (
    _refusal("InvalidParameter", "400, 405, 413, 415", "A value, the method or the body does not fit.", CORRECT),
    _refusal(
        "InvalidParameter.DataFetch",
        "400",
        "A file at an address that the request names could not be fetched.",
        "Check that the address is public, and that the file is there and small enough.",
    ),
    _refusal(
        "DataInspectionFailed",
        "400",
        "Content inspection let the text not pass.",
        "Change the text, or ask the operator about the rules.",
    ),
    _refusal(
        "UnsupportedOperation", "400", "A task that runs or has ended cannot be canceled.", "Wait for its end instead."
    ),
    _refusal(
        "InvalidApiKey",
        "401",
        "The key is missing, unknown, expired or revoked.",
        "Send `Authorization: Bearer sk-…` with a key that is valid.",
    ),
    _refusal(
        "AccessDenied",
        "403",
        "The key may not do this, may not use this model, or has used up its monthly budget.",
        "Use another key, or ask the operator to change what this one may do.",
    ),
    _refusal("NotFound", "404", "The address or the thing does not exist.", "Check the address and the identifier."),
    _refusal("ModelNotFound", "404", "The server has no model of this name.", "Take a name from `GET /v1/models`."),
    _refusal("RequestTimeOut", "408", "The request did not arrive in time.", "Send it again on a new connection."),
    _refusal("Conflict", "409", "The request does not fit the state of the endpoint.", CORRECT),
    _refusal(
        "SigningSecretLost", "409", "The endpoint's secret cannot be read any more.", "Reset the endpoint's secret."
    ),
    _refusal("Throttling.RateQuota", "429", "Too many requests came within the time.", AGAIN),
    _refusal("Throttling.Concurrency", "429", "Too many calls or conversations run at the same time.", AGAIN),
    _refusal(
        "Throttling.AllocationQuota",
        "429",
        "A free quota, or the room for files, is used up.",
        "Ask the operator for more, or wait until files have expired.",
    ),
    _refusal(
        "InternalError",
        "500",
        "The server failed; its log says why.",
        "Tell the operator the request id of the response.",
    ),
    _refusal("ServiceUnavailable", "503", "The server takes nothing new, or its database does not respond.", AGAIN),
    _refusal("ModelUnavailable", "503", "The model cannot serve now.", AGAIN),
    _refusal("ResponseTimeout", "504", "The model took too long.", "Ask for less at once, or try again later."),
    Code(
        "11800005",
        "The webhook endpoint whose secret was to be reset does not exist.",
        "List the endpoints, and check the identifier.",
        "404",
    ),
    Code(
        "11800015",
        "The test event did not arrive at the webhook endpoint.",
        "Read the reason in the message, and check the receiver.",
        "502",
    ),
)
"""Meanings of `code` of a refused request or a failed task."""


def codes_at(path: str, codes: Sequence[str]) -> list[Code]:
    """Refusals with these codes, as an operation at this path writes them."""
    return [
        replace(refusal, code=written_code(path, refusal.code), compatible="")
        for refusal in REFUSALS
        if refusal.code in codes
    ]


EVENT_CODES = (
    Code(
        "invalid_json, invalid_frame",
        "The message is not a JSON object in a text frame.",
        "Send each event as one JSON object; audio goes into it as base64.",
    ),
    Code("unknown_event_type", "The server does not know this type of event.", "Check the spelling of `type`."),
    Code(
        "missing_required_parameter, invalid_type, invalid_value, invalid_event",
        "A field of the event does not fit, or the event comes at the wrong moment.",
        "Correct the field that `param` names.",
        events=("*",),
    ),
    Code(
        "conversation_already_has_active_response, user_is_speaking",
        "A response was asked for while another is active, or while the user speaks.",
        "Wait for `response.done`, or cancel the active response first.",
        events=("response.create",),
    ),
    Code(
        "response_cancel_not_active",
        "There is no response to cancel.",
        "Go on; it has ended already.",
        events=("response.cancel",),
    ),
    Code(
        "input_audio_buffer_commit_empty",
        "The audio buffer was committed without audio in it.",
        "Append audio first, or leave the commit to turn detection.",
        events=("input_audio_buffer.commit",),
    ),
    Code(
        "input_audio_buffer_full, audio_too_fast, too_much_audio",
        "Audio comes faster than the server takes it, or a turn does not end.",
        "Send audio at the speed at which it was spoken.",
        events=("input_audio_buffer.append",),
    ),
    Code(
        "input_text_buffer_full",
        "More text waits to be spoken than the server keeps.",
        "Send text as it is spoken.",
        events=("input_text_buffer.append",),
    ),
    Code(
        "too_many_messages, too_many_refused, too_much_missed",
        "More messages come, or wait to be read, than the server keeps.",
        "Send fewer, and read what the server sends.",
    ),
    Code("too_slow", "The program does not read what the server sends.", "Read events while you send audio."),
    Code("message_too_large, event_too_large", "A message is too long.", "Send audio in shorter pieces."),
    Code(
        "image_not_supported",
        "The model of this session does not accept images.",
        "Leave the image out.",
        events=("input_image_buffer.append",),
    ),
    Code(
        "item_in_progress",
        "The item is being written.",
        "Cancel the response before you delete the item.",
        events=("conversation.item.delete",),
    ),
    Code(
        "budget_used_up, temporary_key_expired, session_expired",
        "The session is about to be closed.",
        "See the close code that follows.",
    ),
)
"""Meanings of `error.code` of an `error` event in a conversation."""

TASK_CODES = ("InvalidParameter", "ModelNotFound", "RequestTimeOut", "Throttling.Concurrency", "ModelUnavailable")


def codes_of_event(name: str) -> tuple[Code, ...]:
    """Errors that an event of the client can get, in `error` or, for a command of run-task, in `task-failed`."""
    if name.endswith("-task"):
        return tuple(codes_at("/api/v1/", TASK_CODES))
    return tuple(code for code in EVENT_CODES if name in code.events or "*" in code.events)


_REMEDIES = {
    close_codes.NORMAL: "Nothing: the conversation ended as it should.",
    1001: "Connect again when the user comes back.",
    1002: "Use a WebSocket library that follows RFC 6455.",
    1005: "Nothing: your side closed without a code.",
    close_codes.ABANDONED: "Connect again after a moment, later each time.",
    1007: "Send text frames in UTF-8.",
    1009: "Send audio in messages of less than a megabyte.",
    1011: "Connect again once; tell the operator if it happens again.",
    close_codes.LIFETIME_OVER: "Connect again to begin a new conversation.",
    close_codes.INTERNAL_ERROR: "Connect again once; tell the operator if it happens again.",
    close_codes.SERVER_STOPPING: "Connect again after a moment: another process takes over.",
    close_codes.KEY_REVOKED: "Use a key that is valid; do not connect again with this one.",
    close_codes.BUDGET_USED_UP: "Ask the operator to raise the budget of the key, or wait for the next month.",
    close_codes.FLOOD: "Send audio at the speed of speech, and read what the server sends.",
    close_codes.TEMPORARY_KEY_OVER: "Make a new temporary key, and connect with it.",
    close_codes.NO_SEAT: "Connect again after a moment, later each time.",
    close_codes.UNAVAILABLE: "Connect again after a moment; `/readyz` says what is missing.",
}

CLOSE_CODES = tuple(
    Code(str(code), f"{meaning[0].upper()}{meaning[1:]}.", _REMEDIES[code])
    for code, meaning in close_codes.MEANINGS.items()
)
"""Close codes of the WebSocket of a conversation."""
