"""MCP servers whose tools language models may call, as the operator lists them in a TOML file."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr, ValidationError


class McpServer(BaseModel, frozen=True, extra="forbid"):
    """One server: a program of this machine (`command`) or an address (`url`)."""

    label: str
    url: str = Field(default="", pattern="^(https?://|$)")
    command: list[str] = []
    headers: dict[str, SecretStr] = {}
    env: dict[str, SecretStr] = {}
    allow: list[str] = []
    """Names of tools that are called without asking; `lights_*` stands for all that begin so."""
    ask: list[str] = []
    """Names of tools that a caller's program has to approve each time."""
    always: bool = False
    """The tools in `allow` are offered in every conversation, and not only to programs that name the server."""
    public: bool = False
    """Those of `always` are offered to guests too."""
    timeout_s: float = Field(default=10.0, gt=0, le=30)

    def asks(self, tool: str) -> bool | None:
        """Return whether a call of a tool has to be approved; None where it may not be called."""
        if any(fnmatchcase(tool, pattern) for pattern in self.ask):
            return True
        return False if any(fnmatchcase(tool, pattern) for pattern in self.allow) else None


def read_mcp_servers(path: Path) -> tuple[McpServer, ...]:
    """Return the servers in a file.

    Raises:
        ValueError: if it cannot be read; the message says where.
    """
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    for label, given in listed.items():
        if not isinstance(given, dict) or bool(given.get("url")) == bool(given.get("command")):
            raise ValueError(f"[{label}] in {path} needs a url or a command, and not both.")
    try:
        return tuple(McpServer.model_validate({**given, "label": label}) for label, given in listed.items())
    except ValidationError as error:  # its own text quotes what was given: headers, and the secrets in them
        found = error.errors(include_input=False)[0]
        raise ValueError(f"{path} cannot be read: {'.'.join(map(str, found['loc']))}: {found['msg']}.") from None
