"""Out-of-band responses: what they read is given with their request or is the conversation so far, and what they come
to is not added to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.conversation import MAX_ITEMS, Conversation
from voiceapp.protocol.items import Item, read_item
from voiceapp.protocol.wire.values import read_text

PARAM = "response.input"


def out_of_band_context(
    response: dict[str, Any], conversation: Conversation, new_id: Callable[[str], str]
) -> Conversation | None:
    """Return the conversation that a requested response reads and writes; None for an ordinary response.

    Raises:
        InvalidParameter: if `conversation` is neither auto nor none, if its items cannot be read, or if it has some and
            the response is an ordinary one.
    """
    given = response.get("input")
    if response.get("conversation") not in (None, "auto", "none"):
        raise InvalidParameter("conversation must be auto or none.", param="response.conversation")
    if response.get("conversation") != "none":
        if given is not None:
            raise InvalidParameter("input needs conversation to be none.", param=PARAM)
        return None
    context = Conversation()
    if given is None:
        context.items = [*conversation.items]
        return context
    if not isinstance(given, list) or len(given) > MAX_ITEMS:
        raise InvalidParameter(f"input must be a list of at most {MAX_ITEMS:,} items.", param=PARAM)
    for position, wire in enumerate(given):
        _add(context, wire, f"{PARAM}[{position}]", conversation, new_id)
    return context


def _add(context: Conversation, wire: Any, at: str, conversation: Conversation, new_id: Callable[[str], str]) -> None:
    try:
        context.add(_item(wire, conversation, new_id))
    except InvalidParameter as refused:
        raise InvalidParameter(refused.message, param=at) from None


def _item(wire: Any, conversation: Conversation, new_id: Callable[[str], str]) -> Item:
    if not isinstance(wire, dict):
        raise InvalidParameter("An item of input must be an object.")
    if wire.get("type") == "item_reference":
        return conversation.find(read_text(wire.get("id"), "id", limit=128))
    item, audio = read_item(wire, new_id("item"))
    if audio is not None:
        raise InvalidParameter(
            "Audio in input needs its transcript: to have it recognised, create an item and refer to it."
        )
    return item
