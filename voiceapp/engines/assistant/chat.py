"""Replies without a language model: skills first, then sentences from documents, then an honest "I do not know".

It never makes up a sentence about the world, replies to the same question in the same conversation the same way, takes
about 5 ms, and ignores instructions and function tools, which it could not follow. `built_in` puts a language model
behind it.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings

from voiceapp.engines.assistant import skills
from voiceapp.engines.assistant.documents import Folder, Passage
from voiceapp.engines.assistant.known_documents import known_documents
from voiceapp.engines.assistant.quotation import quotation
from voiceapp.engines.assistant.retrieval import QueryEmbedder, Question, Retriever, is_question
from voiceapp.engines.assistant.skills import Scene, SkillReply, plain
from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.embedded.embedding import MODEL_FILE, MiniLM
from voiceapp.engines.embedded.lexical import terms
from voiceapp.engines.interfaces import AssistantDelta, ChatDelta, ChatRequest, ChatUsage, Provider
from voiceapp.engines.models import tokens, weights
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.sentences import SentenceSplitter
from voiceapp.errors import EngineTimeout

OPENING = "Hello. Ask me something about this program, or say help."
IDLE_PROMPT = "Are you still there?"
NO_MORE = "That is all I found about it."

_FOLLOW_UP = re.compile(
    r"^(?:and|or|but|what about|how about|why not|how so|which one)\b|\b(?:it|they|them|those|these)\b"
    r"|\b(?:this|that)\W*$",
    re.IGNORECASE,
)
"""A question that leans on the one before it."""
_TEMPLATES, _ = load("documents")
_MORE, _WHICH = _TEMPLATES["more"], _TEMPLATES["which"]
MAX_READ_CHARS = 2_000
"""Part of the last message and of each reply that is read: a question is shorter, and reading megabytes would hold up
everybody's voice."""
MAX_EARLIER = 20
"""Messages of a role that are read again: a name, a list and the topic of a follow-up are found in them."""
MAX_EARLIER_CHARS = 400
PATIENCE_S = 5.0
"""Longest wait for the skills or for the search."""
MAX_LOOK_BACK = 6
"""Number of turns back in which the topic of a follow-up is looked for."""


Result = TypeVar("Result")
Skill = Callable[[str, Scene], SkillReply | None]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A question that no skill replies to."""

    questions: list[Question]
    said: str
    """Replies whose sentences are not said again."""
    is_about_documents: bool
    """Asks which documents there are."""


class RetrievalAssistant(Provider):
    """A `ChatModel` that needs nothing but this process. One per process."""

    def __init__(
        self,
        *,
        documents: str = "",
        folders: Sequence[Folder] | None = None,
        embedder: QueryEmbedder | None = None,
        cache_dir: Path | None = None,
        clock: Callable[[tzinfo], datetime] = datetime.now,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """By default: the folder `documents`, else the manual and DOCUMENTS_DIR; MiniLM, a cache under VAR_DIR, and the
        machine's clock."""
        if documents:
            folders, cache_dir = [Folder(Path(documents))], Path(documents, ".vectors")
        elif folders is None:
            folders = [Folder(Path(settings.BASE_DIR) / "docs" / "spoken", is_manual=True)]
            if settings.DOCUMENTS_DIR:
                folders.append(Folder(Path(settings.DOCUMENTS_DIR)))
        self._retriever = Retriever(
            folders,
            embedder=embedder or MiniLM(),
            cache_dir=cache_dir or Path(settings.VAR_DIR) / "retrieval",
            fetched_dir=Path(settings.MODELS_DIR) / "retrieval",
        )
        self._clock = clock
        self._patience_s = patience_s

    def check(self) -> None:
        weights.check(MODEL_FILE)

    async def warm(self) -> None:
        """Build the index over the documents and the table of cities, so that the first question waits for neither."""
        await self._retriever.ready()
        await lanes().reply.run(skills.reply, "What time is it in London?", Scene())

    async def close(self) -> None:
        """Give up building the index."""
        await self._retriever.close()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The reply, sentence by sentence, or the call of a function."""
        async with aclosing(self.say(await self.known(request) or await self.unknown(request), request)) as deltas:
            async for delta in deltas:
                yield delta

    async def say(self, reply: SkillReply, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """A reply in the form of a chat model's."""
        (written,) = await tokens.count([reply.text], limit=request.max_tokens)
        splitter = SentenceSplitter(first_clause_chars=0)
        if reply.speech_rate is not None:
            yield AssistantDelta(speech_rate=reply.speech_rate)
        yield ChatDelta(author=reply.author)
        if reply.source is not None:
            yield AssistantDelta(source=reply.source)
        if reply.reminders is not None:
            yield AssistantDelta(reminders=reply.reminders)
        for piece in (*splitter.feed(written.text), *splitter.flush()):
            yield ChatDelta(text=piece)
        yield ChatDelta(
            usage=ChatUsage(
                input_tokens=sum(tokens.estimated(message.content) for message in request.messages),
                output_tokens=written.count,
            ),
            finish_reason="length" if written.was_cut else "stop",
        )

    async def passages(self, request: ChatRequest) -> list[Passage]:
        """Return passages of documents about the last message, the nearest first; those of the manual only to a caller
        without instructions of their own.

        Raises:
            EngineUnavailable: if too many questions wait.
        """
        questions = await self._in_lane(self._looked_up, request)
        if not questions:
            return []
        await self._retriever.ready()
        async with self._patience():
            found = await self._retriever.passages(questions)
        has_instructions = any(message.role == "system" for message in request.messages)
        return [passage for passage in found if not (passage.is_manual and has_instructions)]

    def _looked_up(self, request: ChatRequest) -> list[Question]:
        asked = _asked(request)
        wants_more = bool(asked) and _MORE.fits(plain(asked[-1]))
        if not asked or not (wants_more or terms(asked[-1]) or _FOLLOW_UP.search(asked[-1])):
            return []
        return self._questions(asked, self._scene(request, asked), wants_more=wants_more)

    async def computed(self, request: ChatRequest, among: Sequence[Skill]) -> SkillReply | None:
        """Return the reply of one of these skills to the whole of what a person in a session says.

        Raises:
            EngineUnavailable: if too many questions wait.
        """
        if request.facts.started_at is None or request.facts.is_idle_prompt:
            return None
        if request.tools and not request.facts.are_tools_ours:
            return None
        if not request.messages or request.messages[-1].role != "user":
            return None

        def reply(request: ChatRequest) -> SkillReply | None:
            asked = _asked(request)
            said, scene = plain(asked[-1]) if asked else "", self._scene(request, asked)
            return next((found for skill in among if said and (found := skill(said, scene)) is not None), None)

        return await self._in_lane(reply, request)

    async def known(self, request: ChatRequest, *, reads: bool = True) -> SkillReply | None:
        """The reply of a skill, or of the documents unless `reads` is false; None when neither fits.

        Raises:
            EngineUnavailable: if too many questions wait.
        """
        if request.facts.is_idle_prompt:
            return SkillReply(IDLE_PROMPT)
        if not any(message.role == "user" and message.content.strip() for message in request.messages):
            return SkillReply(OPENING)
        if request.messages[-1].role == "assistant":
            return await self.rest(request) or (await self._again(request))[1]
        found = await self._in_lane(self._understood, request)
        if isinstance(found, SkillReply) or not reads:
            return found if isinstance(found, SkillReply) else None
        index = await self._retriever.ready()  # the first index takes as long as it takes
        if found.is_about_documents:
            return SkillReply(known_documents(index.passages))
        async with self._patience():
            hit = await self._retriever.search(found.questions, said=found.said)
        if hit is not None:
            is_session = request.facts.started_at is not None
            return quotation(hit, is_spoken=request.facts.speaks, shows_source=is_session)
        return SkillReply(NO_MORE) if found.said else None

    async def unknown(self, request: ChatRequest) -> SkillReply:
        """Return the reply when nothing is `known` and no language model replies.

        Raises:
            EngineUnavailable: if too many questions wait.
        """
        return await self._in_lane(self._unknown, request)

    def _unknown(self, request: ChatRequest) -> SkillReply:
        asked = _asked(request)
        return skills.reply_to_unknown(asked[-1], self._scene(request, asked), is_question=is_question(asked[-1]))

    def _understood(self, request: ChatRequest) -> SkillReply | _Lookup:
        """The reply of a skill, or what to look up; for a lane."""
        asked = _asked(request)
        scene = self._scene(request, asked)
        if (reply := skills.reply(asked[-1], scene)) is not None:
            return reply
        said = plain(asked[-1])
        wants_more = _MORE.fits(said)
        return _Lookup(
            self._questions(asked, scene, wants_more=wants_more),
            said=" ".join(scene.replies) if wants_more else "",
            is_about_documents=_WHICH.fits(said),
        )

    async def _in_lane(self, function: Callable[[ChatRequest], Result], request: ChatRequest) -> Result:
        async with self._patience():
            return await lanes().reply.run(function, request)

    @asynccontextmanager
    async def _patience(self) -> AsyncGenerator[None, None]:
        try:
            async with asyncio.timeout(self._patience_s):
                yield
        except TimeoutError as late:
            raise EngineTimeout("The assistant is busy; please try again.") from late

    async def rest(self, request: ChatRequest) -> SkillReply | None:
        """Return the rest of a reply that was cut off: the last messages are as much of it as was heard.

        None when nothing fits, or when the reply would be another by now.
        """
        heard, reply = await self._again(request)
        if reply is None:
            return None
        said, whole = " ".join(heard.split()), " ".join(reply.text.split())
        return replace(reply, text=whole.removeprefix(said).lstrip()) if whole.startswith(said) else None

    async def _again(self, request: ChatRequest) -> tuple[str, SkillReply | None]:
        """Return the part of the last reply that was heard, and the reply to the same question now."""
        count = next((n for n, message in enumerate(reversed(request.messages)) if message.role != "assistant"), 0)
        before, replies = request.messages[:-count], request.messages[-count:]
        heard = [message.content[:MAX_READ_CHARS] for message in replies[-MAX_EARLIER:]]
        reply = await self.known(replace(request, messages=before))
        return " ".join(heard), reply and replace(reply, reminders=None)  # what it set is set

    def _questions(self, asked: list[str], scene: Scene, *, wants_more: bool) -> list[Question]:
        """Return the questions to look up, the most promising first; one about an earlier one brings its topic."""
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
        """Return whether it is a question that was looked up and that stood for itself."""
        stands = _FOLLOW_UP.search(asked) is None and not _MORE.fits(plain(asked))
        return stands and bool(terms(asked)) and skills.reply(asked, scene) is None

    def _scene(self, request: ChatRequest, asked: list[str]) -> Scene:
        said = [message.content for message in request.messages if message.role == "user" and message.content.strip()]
        replies = [message.content for message in request.messages if message.role == "assistant" and message.content]
        replies = [reply[:MAX_READ_CHARS] for reply in replies[-MAX_EARLIER:]]
        return Scene(
            now=self._clock(_zone(request.facts.time_zone)),
            last_reply=replies[-1] if replies else "",
            replies=tuple(replies),
            earlier=tuple(asked[:-1]),
            exchanges=tuple(_exchanges(request)),
            first=said[0][:MAX_EARLIER_CHARS] if len(said) > 1 else "",
            turns=len(said),
            facts=request.facts,
            dice=random.SystemRandom() if request.seed is None else random.Random(request.seed),  # noqa: S311 - dice
        )


def _asked(request: ChatRequest) -> list[str]:
    """Return the user's last messages, the latest last."""
    said = [message.content for message in request.messages if message.role == "user" and message.content.strip()]
    return [
        *(text[:MAX_EARLIER_CHARS] for text in said[-1 - MAX_EARLIER : -1]),
        *(text[:MAX_READ_CHARS] for text in said[-1:]),
    ]


def _exchanges(request: ChatRequest) -> list[tuple[str, str]]:
    """Return the user's earlier messages that got a reply, each with the reply."""
    spoken = [message for message in request.messages if message.role in ("user", "assistant")]
    both = [
        (said.content[:MAX_EARLIER_CHARS], reply.content[:MAX_READ_CHARS])
        for said, reply in pairwise(spoken)
        if (said.role, reply.role) == ("user", "assistant")
    ]
    return both[-MAX_EARLIER:]


def _zone(name: str) -> tzinfo:
    """The caller's zone, the installation's when the caller's is not known, and UTC on a machine without zones."""
    for known in (name, settings.LOCAL_TIME_ZONE):
        try:
            return ZoneInfo(known)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return UTC
