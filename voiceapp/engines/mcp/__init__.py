"""Tools of MCP servers that the operator lists (package `mcp`)."""
