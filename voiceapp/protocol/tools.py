"""The function tools that a client gives a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from voiceapp.errors import InvalidParameter
from voiceapp.protocol.wire.json_schemas import check_tools
from voiceapp.protocol.wire.values import read_object, read_text

MAX_TOOLS = 128
MAX_DESCRIPTION = 200_000
"""Characters."""


def read_tools(value: object, at: str, mcp_servers: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """The tools of a session or response; `at` is their path, `mcp_servers` the addresses of the operator's by label.

    Raises:
        InvalidParameter: too many, or one that cannot be read.
    """
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_TOOLS:
        raise InvalidParameter(f"tools must be a list of at most {MAX_TOOLS} tools.", param=at)
    tools = tuple(_tool(tool, f"{at}[{position}]", mcp_servers) for position, tool in enumerate(value))
    try:
        check_tools(tool["function"].get("parameters", {}) for tool in functions(tools))
    except ValueError as error:
        raise InvalidParameter(f"{at} is refused: {error}.", param=at) from None
    return tools


_OF_A_FUNCTION = ("name", "description", "parameters", "strict")


def functions(tools: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The tools that the client runs itself."""
    return tuple(tool for tool in tools if tool["type"] == "function")


def read_mcp(tool: dict[str, Any], at: str, servers: Mapping[str, str]) -> dict[str, Any]:
    """A server of tools; what of its tools may be called, and how, is up to the operator first.

    Raises:
        InvalidParameter: if it is not on the operator's list, or cannot be read.
    """
    label = read_text(tool.get("server_label"), f"{at}.server_label", limit=128)
    if label not in servers or tool.get("server_url") not in (None, "", servers[label]):
        raise InvalidParameter(
            f"{at}: there is no MCP server '{label[:64]}' here of that address; the operator lists those that may be "
            "used.",
            param=f"{at}.server_label",
        )
    if given := sorted({"authorization", "headers", "connector_id", "tunnel_id"} & {n for n in tool if tool[n]}):
        raise InvalidParameter(f"{at}.{given[0]} is the operator's; leave it out.", param=f"{at}.{given[0]}")
    allowed, approval = tool.get("allowed_tools"), tool.get("require_approval")
    allowed = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
    if allowed is not None and not (isinstance(allowed, list) and all(isinstance(each, str) for each in allowed)):
        raise InvalidParameter(f"{at}.allowed_tools must be a list of names.", param=f"{at}.allowed_tools")
    never = approval.get("never") if isinstance(approval, dict) else None
    unasked = never.get("tool_names") if isinstance(never, dict) else None
    if approval not in (None, "always", "never") and not isinstance(unasked, list):
        raise InvalidParameter(
            f"{at}.require_approval must be always, never, or name tools in never.tool_names.",
            param=f"{at}.require_approval",
        )
    known = {"server_label": label, "server_url": tool.get("server_url"), "allowed_tools": allowed}
    known["require_approval"] = approval
    return {"type": "mcp", **{name: value for name, value in known.items() if value is not None}}


def _tool(value: object, at: str, mcp_servers: Mapping[str, str]) -> dict[str, Any]:
    """One tool; a function in the nested form, and the flat form of a sister dialect is accepted too."""
    tool = read_object(value, at)
    if tool.get("type") == "mcp" and mcp_servers:
        return read_mcp(tool, at, mcp_servers)
    if tool.get("type", "function") != "function":
        raise InvalidParameter(f"{at}.type must be function{' or mcp' if mcp_servers else ''}.", param=f"{at}.type")
    given = read_object(tool.get("function", tool), f"{at}.function")
    function = {name: given[name] for name in _OF_A_FUNCTION if given.get(name) is not None}
    if not read_text(function.get("name"), f"{at}.function.name", limit=128):
        raise InvalidParameter(f"{at}.function.name is empty.", param=f"{at}.function.name")
    read_text(function.get("description", ""), f"{at}.function.description", limit=MAX_DESCRIPTION)
    read_object(function.get("parameters", {}), f"{at}.function.parameters")
    return {"type": "function", "function": function}
