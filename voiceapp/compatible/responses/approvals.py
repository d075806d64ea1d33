"""Items about tools of MCP servers that come back in the input: calls, and the approvals of calls.

Responses are not stored, so the identifier of an approval request is signed: only what a model asked for here, as it
asked for it, can be approved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.crypto import constant_time_compare, salted_hmac

from voiceapp.compatible.responses.schemas import InputItem
from voiceapp.errors import InvalidParameter
from voiceapp.formats import identifier
from voiceapp.protocol.items import McpItem

FIELDS = {
    "mcp_list_tools": ("server_label",),
    "mcp_call": ("server_label", "name", "arguments"),
    "mcp_approval_request": ("id", "server_label", "name", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
}
"""Fields that an item of each type needs."""


def approval_id(call: Mapping[str, Any], nonce: str = "") -> str:
    """Return the identifier of a request to approve a call: {server_label, name, arguments}."""
    nonce = nonce or identifier("mcpr")
    signed = json.dumps([nonce, call["server_label"], call["name"], call["arguments"]])
    return f"{nonce}.{salted_hmac('voiceapp.approvals', signed, algorithm='sha256').hexdigest()[:32]}"


def read_approvals(items: Sequence[InputItem]) -> dict[int, McpItem]:
    """Return the items about tools of servers, by their position.

    Raises:
        InvalidParameter: if a field is missing, or an approval is of nothing that was asked for here.
    """
    found: dict[int, McpItem] = {}
    asked: set[str] = set()
    for number, item in enumerate(items):
        kind, place = item.type or "", f"input.{number}"
        for name in FIELDS.get(kind, ()):
            if getattr(item, name) is None:
                raise InvalidParameter(f"{place}.{name} is required.", param=f"{place}.{name}")
        fields = item.model_dump(include={*FIELDS.get(kind, ()), "output", "error", "approval_request_id"})
        if kind == "mcp_call" and isinstance(item.output, list):
            raise InvalidParameter(f"{place}.output must be a string.", param=f"{place}.output")
        if kind == "mcp_approval_request":
            if not constant_time_compare(item.id or "", approval_id(fields, (item.id or "").partition(".")[0])):
                raise InvalidParameter(f"{place}: no model asked here to approve this call.", param=place)
            asked.add(fields["id"])
        if kind == "mcp_approval_response" and item.approval_request_id not in asked:
            at = f"{place}.approval_request_id"
            raise InvalidParameter(f"{at}: input holds no such mcp_approval_request before it.", param=at)
        if kind in FIELDS:
            found[number] = McpItem(item.id or f"call_{number}", kind, fields)
    return found
