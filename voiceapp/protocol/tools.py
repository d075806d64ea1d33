"""The function tools that a client gives a session."""

from __future__ import annotations

from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.wire.json_schemas import check_tools
from voiceapp.protocol.wire.values import read_object, read_text

MAX_TOOLS = 128
MAX_DESCRIPTION = 200_000
"""Characters."""


def read_tools(value: object, at: str) -> tuple[dict[str, Any], ...]:
    """The tools of a session or response; `at` is their path.

    Raises:
        InvalidParameter: too many, or one that cannot be read.
    """
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_TOOLS:
        raise InvalidParameter(f"tools must be a list of at most {MAX_TOOLS} tools.", param=at)
    tools = tuple(_tool(tool, f"{at}[{position}]") for position, tool in enumerate(value))
    try:
        check_tools(tool["function"].get("parameters", {}) for tool in tools)
    except ValueError as error:
        raise InvalidParameter(f"{at} is refused: {error}.", param=at) from None
    return tools


_OF_A_FUNCTION = ("name", "description", "parameters", "strict")


def _tool(value: object, at: str) -> dict[str, Any]:
    """One function tool in the nested form; the flat form of a sister dialect is accepted too."""
    tool = read_object(value, at)
    if tool.get("type", "function") != "function":
        raise InvalidParameter(f"{at}.type must be function.", param=f"{at}.type")
    given = read_object(tool.get("function", tool), f"{at}.function")
    function = {name: given[name] for name in _OF_A_FUNCTION if given.get(name) is not None}
    if not read_text(function.get("name"), f"{at}.function.name", limit=128):
        raise InvalidParameter(f"{at}.function.name is empty.", param=f"{at}.function.name")
    read_text(function.get("description", ""), f"{at}.function.description", limit=MAX_DESCRIPTION)
    read_object(function.get("parameters", {}), f"{at}.function.parameters")
    return {"type": "function", "function": function}
