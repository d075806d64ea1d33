"""The embedded assistant: skills first, then sentences from documents, then an honest "I do not know that".

It is no language model. It never makes up a sentence about the world, answers the same question in the same
conversation the same way, takes about 5 ms, and ignores instructions and function tools, which it could not follow.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings

from voiceapp.engines.embedded import skills
from voiceapp.engines.embedded.documents import Folder
from voiceapp.engines.embedded.embedding import MiniLM
from voiceapp.engines.embedded.lexical import terms
from voiceapp.engines.embedded.retrieval import Hit, QueryEmbedder, Question, Retriever
from voiceapp.engines.embedded.skills import Scene, SkillAnswer
from voiceapp.engines.embedded.skills.phrases import Phrases
from voiceapp.engines.embedded.skills.words import plain
from voiceapp.engines.interfaces import ChatDelta, ChatMessage, ChatRequest, ChatUsage
from voiceapp.engines.lanes import lanes
from voiceapp.engines.sentences import SentenceSplitter

OPENING = "Hello. Ask me something about this program, or say help."
IDLE_PROMPT = "Are you still there?"
NOT_FOUND = "I did not find that in my documents."
NO_MODEL_SPOKEN = (
    "No language model is configured here, so that is all I can do. "
    "To add one, ask me: how do I connect a language model?"
)
NO_MODEL_WRITTEN = (
    "No language model is configured here. To add one, set CHAT_BASE_URL to any OpenAI-compatible server, "
    "with CHAT_MODEL and CHAT_API_KEY where it needs them, and restart."
)
NO_MORE = "That is all I found about it."

_FOLLOW_UP = re.compile(
    r"^(?:and|or|but|what about|how about|why not|how so|which one)\b|\b(?:it|they|them|those|these)\b"
    r"|\b(?:this|that)\W*$",
    re.IGNORECASE,
)
"""A question that leans on the one before it."""
_MORE = Phrases(
    "[please|and|ok|okay]* [can you] tell me [some] more [about (it|that|this)] [please]",
    "[please|and|ok|okay]* (more|go on|continue|keep going|what else|anything else|say more) [please]",
    "(and then|more detail|more details)",
    "[please|can you]* explain [it|that] [more|further]",
)
MAX_READ_CHARS = 2_000
"""Of each message, how much is read: a question is shorter, and reading megabytes would hold up everybody's voice."""
MAX_COUNTED_CHARS = 20_000
MAX_LOOK_BACK = 6
"""How many turns back the topic of a follow-up may lie."""


class RetrievalAssistant:
    """A `ChatModel` that needs nothing but this process. One per process."""

    def __init__(
        self,
        *,
        folders: Sequence[Folder] | None = None,
        embedder: QueryEmbedder | None = None,
        cache_dir: Path | None = None,
        clock: Callable[[tzinfo], datetime] = datetime.now,
    ) -> None:
        """By default: the manual and DOCUMENTS_DIR, MiniLM, a cache under VAR_DIR, and the machine's clock."""
        if folders is None:
            folders = [Folder(Path(settings.BASE_DIR) / "docs" / "manual", is_manual=True)]
            if settings.DOCUMENTS_DIR:
                folders.append(Folder(Path(settings.DOCUMENTS_DIR)))
        self._retriever = Retriever(
            folders, embedder=embedder or MiniLM(), cache_dir=cache_dir or Path(settings.VAR_DIR) / "retrieval"
        )
        self._clock = clock

    async def warm(self) -> None:
        """Build the index over the documents and the table of cities, so that the first question waits for neither."""
        await self._retriever.ready()
        await lanes().speak.run(skills.answer, "What time is it in London?", Scene())

    async def close(self) -> None:
        """Give up building the index."""
        await self._retriever.close()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Raises EngineUnavailable when too many questions wait."""
        answer = await self._answer(request)
        pieces, is_cut = _within(answer.text, request.max_tokens)
        if answer.speech_rate is not None:
            yield ChatDelta(speech_rate=answer.speech_rate)
        for piece in pieces:
            yield ChatDelta(text=piece)
        yield ChatDelta(
            usage=ChatUsage(
                input_tokens=sum(count_tokens(message.content) for message in request.messages),
                output_tokens=sum(map(count_tokens, pieces)),
            ),
            finish_reason="length" if is_cut else "stop",
        )

    async def _answer(self, request: ChatRequest) -> SkillAnswer:
        messages = [replace(message, content=message.content[:MAX_READ_CHARS]) for message in request.messages]
        asked = [message.content for message in messages if message.role == "user" and message.content.strip()]
        if request.context.get("is_idle_prompt"):
            return SkillAnswer(IDLE_PROMPT)
        if not asked:
            return SkillAnswer(OPENING)
        answered = [message for message in messages if message.role == "assistant" and message.content]
        scene = self._scene(request, asked, answered)
        found = skills.answer(asked[-1], scene)
        if found is not None:
            return found
        wants_more = _MORE.fits(plain(asked[-1]))
        said = " ".join(message.content for message in answered) if wants_more else ""
        hit = await self._retriever.search(self._questions(asked, scene, wants_more=wants_more), said=said)
        if hit is not None:
            return SkillAnswer(_quoted(hit))
        return SkillAnswer(NO_MORE if said else _unknown(request, answered))

    def _questions(self, asked: list[str], scene: Scene, *, wants_more: bool) -> list[Question]:
        """What to look for, the most promising first; a question that leans on an earlier one brings its topic."""
        current = asked[-1]
        if not wants_more and terms(current) and _FOLLOW_UP.search(current) is None:
            return [Question(current)]
        before = reversed(asked[-1 - MAX_LOOK_BACK : -1])
        topic = next((earlier for earlier in before if self._is_topic(earlier, scene)), None)
        if topic is None:
            return [Question(current)]
        if wants_more:
            return [Question(topic)]
        return [Question(f"{topic} {current}", must_hold=current), Question(current)]

    @staticmethod
    def _is_topic(asked: str, scene: Scene) -> bool:
        """Whether it is a question that was looked up and that stood for itself."""
        stands = _FOLLOW_UP.search(asked) is None and not _MORE.fits(plain(asked))
        return stands and bool(terms(asked)) and skills.answer(asked, scene) is None

    def _scene(self, request: ChatRequest, asked: list[str], answered: list[ChatMessage]) -> Scene:
        return Scene(
            now=self._clock(_zone(request.context.get("time_zone"))),
            last_answer=answered[-1].content if answered else "",
            earlier=tuple(asked[:-1]),
            context=request.context,
            dice=random.SystemRandom() if request.seed is None else random.Random(request.seed),  # noqa: S311 - dice
        )


def _zone(name: object) -> tzinfo:
    """The caller's zone, the installation's when the caller's is not known, and UTC on a machine without zones."""
    for known in (str(name or ""), settings.LOCAL_TIME_ZONE):
        try:
            return ZoneInfo(known)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return UTC


def _quoted(hit: Hit) -> str:
    source = f"the manual, {hit.passage.title}" if hit.passage.is_manual else hit.passage.title
    return f"From {source}: {hit.text}"


def _unknown(request: ChatRequest, answered: Sequence[ChatMessage]) -> str:
    """Said in full once in a conversation, and short after that."""
    if any(NOT_FOUND in message.content for message in answered):
        return NOT_FOUND
    return f"{NOT_FOUND} {NO_MODEL_SPOKEN if request.context.get('spoken', True) else NO_MODEL_WRITTEN}"


def count_tokens(text: str) -> int:
    """Words and marks: near to what a tokenizer counts for English, and costs nothing. Long texts are estimated."""
    read = text[:MAX_COUNTED_CHARS]
    return len(re.findall(r"\w+|[^\w\s]", read)) * max(len(text), 1) // max(len(read), 1)


def _within(text: str, max_tokens: int | None) -> tuple[list[str], bool]:
    """The sentences of `text`, cut after `max_tokens`; whether they were cut."""
    tokens = list(re.finditer(r"\w+|[^\w\s]", text))
    is_cut = max_tokens is not None and len(tokens) > max_tokens
    if max_tokens is not None and is_cut:
        text = text[: tokens[max_tokens].start()].rstrip() if max_tokens > 0 else ""
    splitter = SentenceSplitter(first_clause_chars=0)
    return [*splitter.feed(text), *splitter.flush()], is_cut
