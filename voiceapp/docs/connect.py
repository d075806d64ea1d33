"""Programs that connect to this server, a file of docs/examples/connect each, shown with its address and a key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

FOLDER = Path(settings.BASE_DIR, "docs", "examples", "connect")
ORIGIN = "http://localhost:8000"
"""The address that the files have."""
KEY = "sk-…"
"""The key that the files have: it is to be replaced."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that people can copy."""

    file: str
    """Its name in the folder."""
    title: str
    install: str = ""
    """The command that installs what it needs."""

    @property
    def id(self) -> str:
        """Its place on the page."""
        return self.file.replace("_", "-").replace(".", "-")

    @property
    def language(self) -> str:
        return self.file.rpartition(".")[2]

    def program(self, origin: str, key: str = "") -> str:
        """Its text, for a server at `origin` (`https://host`) and a key; without one, the key's place is marked."""
        return addressed(_text(self.file), origin).replace(KEY, key or KEY)


@dataclass(frozen=True, slots=True)
class Library:
    """A client library, and what can be done with it."""

    id: str
    title: str
    examples: tuple[Program, ...]


DASHSCOPE = "pip install dashscope"
OPENAI = "pip install openai"
LIBRARIES = (
    Library(
        "dashscope",
        "dashscope",
        (
            Program("dashscope_realtime.py", "A realtime conversation", DASHSCOPE),
            Program("dashscope_recognition.py", "Recognition of speech", DASHSCOPE),
            Program("dashscope_synthesis.py", "Synthesis of speech", DASHSCOPE),
            Program("dashscope_chat.py", "Chat and embedding", DASHSCOPE),
            Program("dashscope_tasks.py", "Transcription as a task", DASHSCOPE),
        ),
    ),
    Library(
        "openai",
        "OpenAI",
        (
            Program("openai_realtime.py", "A realtime conversation in Python", f'{OPENAI}"[realtime]"'),
            Program("openai_chat.py", "Chat and speech in Python", OPENAI),
            Program("openai_realtime.mjs", "A chat and a realtime conversation in JavaScript", "npm install openai ws"),
            Program("openai_agents_realtime.py", "An agent in Python", "pip install openai-agents"),
            Program("openai_agents_realtime.mjs", "An agent in JavaScript", "npm install @openai/agents-realtime zod"),
        ),
    ),
    Library(
        "frameworks",
        "Frameworks",
        (
            Program("pipecat_bot.py", "Pipecat", 'pip install "pipecat-ai[openai]"'),
            Program("livekit_agent.py", "LiveKit Agents", "pip install livekit-agents livekit-plugins-openai"),
            Program("langchain_chat.py", "LangChain", "pip install langchain-openai"),
            Program("llamaindex_chat.py", "LlamaIndex", "pip install llama-index-llms-openai"),
            Program("litellm_chat.py", "LiteLLM", "pip install litellm"),
            Program("ai_sdk.mjs", "AI SDK of Vercel", "npm install ai @ai-sdk/openai"),
        ),
    ),
    Library(
        "without",
        "Without a library",
        (
            Program("websocket.mjs", "JavaScript without npm"),
            Program("browser.html", "A page that talks"),
            Program("browser_server.py", "The server of that page, which keeps the key"),
            Program("curl.sh", "curl"),
        ),
    ),
)


def addressed(text: str, origin: str) -> str:
    """A text about a server on this machine, for the server at `origin`."""
    sockets = origin.replace("http", "ws", 1)
    return text.replace(ORIGIN.replace("http", "ws"), sockets).replace(ORIGIN, origin)


@cache
def _text(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")
