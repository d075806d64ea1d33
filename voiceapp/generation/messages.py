"""Translation of messages of either style to those of a chat engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from voiceapp.engines.interfaces import ChatMessage, ToolCall
from voiceapp.errors import InvalidParameter
from voiceapp.generation.schemas import ChatMessageBody, Exchange, GenerationInput, ImageAddress, MessagePart

Role = Literal["system", "user", "assistant", "tool"]

_TEXT_TYPES = (None, "text", "input_text", "output_text")
_IMAGE_TYPES = (None, "image", "image_url", "input_image")
_IMAGE_SCHEMES = ("https://", "http://", "data:image/")


def chat_messages(messages: Sequence[ChatMessageBody], *, at: str) -> tuple[ChatMessage, ...]:
    """The messages for an engine; `at` is what the style calls the list.

    Raises:
        InvalidParameter: if there are none, or naming the one that says nothing or is of a kind that is not read here.
    """
    if not messages:
        raise InvalidParameter(f"{at} holds no message.", param=at)
    return tuple(chat_message(message, f"{at}.{number}") for number, message in enumerate(messages))


def chat_message(message: ChatMessageBody, at: str) -> ChatMessage:
    """One message for an engine; `at` is where it stands in the body.

    Raises:
        InvalidParameter: if it says nothing, or is of a kind that is not read here.
    """
    role: Role = "system" if message.role == "developer" else message.role
    if message.content is None and not message.tool_calls:
        raise InvalidParameter(f"{at}.content is required.", param=f"{at}.content")
    parts: tuple[dict[str, Any], ...] = ()
    if isinstance(message.content, list):
        parts = tuple(_part(part, f"{at}.content.{number}") for number, part in enumerate(message.content))
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    else:
        text = message.content or ""
    return ChatMessage(
        role,
        text,
        tool_calls=tuple(
            ToolCall(call.id or f"call_{number}", call.function.name, call.function.arguments)
            for number, call in enumerate(message.tool_calls or ())
        ),
        tool_call_id=message.tool_call_id,
        # Texts alone are one text, which any engine reads.
        parts=parts if any(part["type"] != "text" for part in parts) else (),
    )


def native_messages(given: GenerationInput) -> tuple[ChatMessage, ...]:
    """`messages`, or `history` and `prompt`; a prompt besides messages is the newest of them.

    Raises:
        InvalidParameter: if a message cannot be read, or there is none.
    """
    if given.messages is None and given.prompt is None:
        raise InvalidParameter("input needs messages, or a prompt.", param="input.messages")
    if given.messages is not None and given.history is not None:
        raise InvalidParameter("input has messages and history; history goes with prompt.", param="input.history")
    said = () if given.messages is None else chat_messages(given.messages, at="input.messages")
    asked = (ChatMessage("user", given.prompt),) if given.prompt else ()
    messages = (*_earlier(given.history or ()), *said, *asked)
    if not messages:
        raise InvalidParameter("input.prompt is empty.", param="input.prompt")
    return messages


def _earlier(history: Sequence[Exchange]) -> list[ChatMessage]:
    both = [(ChatMessage("user", turn.user), ChatMessage("assistant", turn.bot)) for turn in history]
    return [message for turn in both for message in turn if message.content]


def _part(part: MessagePart, at: str) -> dict[str, Any]:
    """A part as OpenAI's interface writes it."""
    image = part.image_url.url if isinstance(part.image_url, ImageAddress) else part.image_url or part.image
    if part.text is not None and part.type in _TEXT_TYPES:
        return {"type": "text", "text": part.text}
    if image is not None and part.type in _IMAGE_TYPES:
        if not image.startswith(_IMAGE_SCHEMES):
            raise InvalidParameter(
                f"{at}: an image is given by its http or https address, or as data:image/…;base64,….", param=at
            )
        return {"type": "image_url", "image_url": {"url": image}}
    if part.audio is not None or part.input_audio is not None:
        raise InvalidParameter(f"{at} holds audio; chat models here read text. Transcribe it first.", param=at)
    if part.video is not None:
        raise InvalidParameter(f"{at} holds video, which no chat model here watches.", param=at)
    raise InvalidParameter(f"{at} holds neither text nor an image.", param=at)
