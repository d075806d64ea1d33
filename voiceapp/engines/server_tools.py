"""Tools of servers for the rooms that call models, which name no provider."""

from voiceapp.engines.mcp.connection import connections
from voiceapp.engines.mcp.replies import MAX_ROUNDS, approved, listed, offered, replies

__all__ = ["MAX_ROUNDS", "approved", "connections", "listed", "offered", "replies"]
