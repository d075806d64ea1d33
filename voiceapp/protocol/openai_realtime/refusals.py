"""Refusals as OpenAI's clients know them: some end a session at any code or sentence that they do not recognise."""

from __future__ import annotations

from dataclasses import replace

from voiceapp.protocol.wire import events as ev

_ABOUT_ITEMS: dict[str, dict[str, str]] = {
    ev.ItemCreate.type: {"item.id": "item_create_duplicate_item_id"},
    ev.ItemRetrieve.type: {"item_id": "item_retrieve_invalid_item_id"},
    ev.ItemDelete.type: {"item_id": "item_delete_invalid_item_id"},
    ev.ItemTruncate.type: {"item_id": "item_truncate_invalid_item_id"},
}
"""Codes of invalid values, by what the client sent last and by the field that was refused."""
_SENTENCES = {"response_cancel_not_active": "Cancellation failed: no active response found"}
"""Sentences that clients look for."""


def refusal_to(error: ev.ErrorEvent, asked: str) -> ev.ErrorEvent:
    """The refusal of an event of type `asked`, with the code and the sentence that dialect has for it."""
    code = error.code
    if code == "invalid_value":
        code = _ABOUT_ITEMS.get(asked, {}).get(error.param or "", code)
    return replace(error, code=code, message=_SENTENCES.get(code, error.message))
