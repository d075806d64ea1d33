"""Content inspection: what chat models are asked and reply is looked at before it goes on. Off unless it is set up.

A list of words, and a server with OpenAI's `/moderations`, both where both are set. A reply is held back sentence by
sentence until it was looked at. Where the server cannot be asked, nothing passes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from voiceapp.engines.interfaces import ChatDelta, ChatProvider, ChatRequest, WrappedChat
from voiceapp.engines.openai.client import RemoteServer
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import DataInspectionFailed, EngineUnavailable

MAX_VERDICT_BYTES = 1024 * 1024
ASKED = "Input data may contain inappropriate content."
REPLIED = "Output data may contain inappropriate content."


class ContentInspector:
    """Looks at texts. One per process, and for each model of an agent with words of its own."""

    def __init__(
        self,
        *,
        words: str = "",
        further: Iterable[str] = (),
        base_url: str = "",
        api_key: str = "",
        model: str = "",
    ) -> None:
        """`words` names a file with a word or phrase in each line, beside `further` ones; `base_url` is what comes
        before `/moderations`."""
        self._words = _pattern([*(Path(words).read_text(encoding="utf-8").splitlines() if words else ()), *further])
        self._model = model
        self._server: RemoteServer | None = None
        if base_url:
            self._server = RemoteServer(
                title="moderation server", settings="INSPECTION", base_url=base_url, api_key=api_key, timeout_s=10.0
            )

    async def check(self, text: str, refusal: str) -> None:
        """Return when nothing is wrong with a text.

        Raises:
            DataInspectionFailed: if it may not pass; `refusal` is its message.
            EngineUnavailable: if the moderation server cannot tell.
            EngineTimeout: if the moderation server takes too long.
            EngineRefused: if the moderation server does not accept the request.
        """
        if not text.strip():
            return
        if self._words is not None and self._words.search(text):
            raise DataInspectionFailed(refusal)
        if self._server is not None and await self._is_flagged(self._server, text):
            raise DataInspectionFailed(refusal)

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()

    async def _is_flagged(self, server: RemoteServer, text: str) -> bool:
        body = {"input": text} | ({"model": self._model} if self._model else {})
        verdict = await server.ask("/moderations", body, limit=MAX_VERDICT_BYTES)
        try:
            return any(bool(result["flagged"]) for result in verdict["results"])
        except (KeyError, TypeError) as error:
            raise EngineUnavailable("The moderation server sent something that is not a verdict.") from error


class InspectedChat(WrappedChat):
    """A `ChatModel` whose requests and replies are inspected."""

    def __init__(self, chat: ChatProvider, inspector: ContentInspector) -> None:
        super().__init__(chat)
        self._inspector = inspector

    async def close(self) -> None:
        """Close the connections of the running event loop. The model inside is closed as a model of its own."""
        await self._inspector.close()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply of the model, inspected before it is passed on."""
        await self._inspector.check(_news(request), ASKED)
        splitter = SentenceSplitter(first_clause_chars=0)
        arguments = served_by = ""
        async with aclosing(self._chat.stream(request)) as deltas:
            async for delta in deltas:
                whole = "".join(splitter.feed(delta.text)) if delta.text else ""
                if delta.finish_reason is not None:
                    whole += "".join(splitter.flush())
                    await self._inspector.check(arguments, REPLIED)
                await self._inspector.check(whole, REPLIED)
                if delta.tool_call is not None:
                    arguments += delta.tool_call.arguments
                served_by = delta.served_by or served_by
                held = replace(delta, text=whole, served_by=served_by)
                if held != type(held)(logprobs=delta.logprobs, served_by=served_by):
                    served_by = ""
                    yield held


def content_inspector(further: Iterable[str] = ()) -> ContentInspector | None:
    """Return the inspector that the operator has set up, with further words; None without either."""
    if not (further or settings.INSPECTION_WORDS or settings.INSPECTION_BASE_URL):
        return None
    return ContentInspector(
        words=settings.INSPECTION_WORDS,
        further=further,
        base_url=settings.INSPECTION_BASE_URL,
        api_key=settings.INSPECTION_API_KEY,
        model=settings.INSPECTION_MODEL,
    )


def _news(request: ChatRequest) -> str:
    """Return the text since the last reply; earlier text was inspected when it came."""
    texts: list[str] = []
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        texts.insert(0, message.content)
    return "\n".join(texts)


def _pattern(lines: Iterable[str]) -> re.Pattern[str] | None:
    """The words of a list, each as a whole and in capitals or not; lines that begin with # are comments."""
    words = [re.escape(line) for each in lines if (line := each.strip()) and not line.startswith("#")]
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE) if words else None
