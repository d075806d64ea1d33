"""Finds the one or two sentences of the documents that answer a question, or nothing.

BM25 over passages and MiniLM over passages and sentences, fused; the weights ordered best for 40 questions about the
manual. What decides whether there is a reply at all is the cosine, whose scale does not depend on the documents.
Without the embedding model, words alone have to do.

`python -m tests.bench.retrieval` measures the thresholds.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voiceapp.engines.assistant import documents
from voiceapp.engines.assistant.documents import Folder, Passage
from voiceapp.engines.assistant.vector_cache import VectorCache
from voiceapp.engines.embedded.lexical import Lexicon, terms
from voiceapp.engines.models.lanes import lanes
from voiceapp.errors import EngineUnavailable

log = logging.getLogger(__name__)

ACCEPTED = ((0.45, 0.0), (0.40, 0.34), (0.30, 0.95))
"""Least cosine with the least share of the question's words, by weight: the surer the one, the less of the other."""
ACCEPTED_OF_MANUAL = ((0.58, 0.0), (0.45, 0.40), (0.42, 0.48), (0.30, 0.95))
"""The same for the product's own manual, and only for what is a question, or as near as `SURELY_MEANT`: visitors talk
about all sorts of things. Of 52 questions about the product 51 are quoted, of 103 other utterances none."""
SURELY_MEANT = 0.62
_QUESTION = re.compile(
    r"^\W*(?:(?:please|so|and|but|okay|ok|hi|hello|hey|well|um|uh) )*"
    r"(?:how|what|which|who|where|when|why|is|are|do|does|did|can|could|may|must|should|will|would|has|have|"
    r"i cannot|i can't|my \w+ (?:is|does)|tell me|explain|describe|show me|help me|i want to know|i need to know)\b",
    re.IGNORECASE,
)
_QUESTION_MARK = re.compile(r"\W*?\?")
"""Question mark in a text read backwards."""
MIN_HELD = 0.5
"""Share of what a follow-up adds that has to be in the passage."""
MIN_COVERAGE = 0.6
"""Without vectors: how much of the question's weight in words a passage has to hold."""
DENSE_WEIGHT = 0.6
LEAD_BONUS = 0.05
"""For the first sentence of a passage, which tends to say what the others explain."""
CANDIDATES = 5
MOST_PASSAGES = 3
"""That a language model is given."""
MAX_REPLY_CHARS = 280
SAID_CHARS = 35
"""So much of a sentence was said at least, when it was said: speech may have left out its end."""
CHECK_S = 5.0
"""Interval of looks at the folders for changes."""

PATIENCE_S = 1.0
"""Time that a question waits for changed documents before the earlier ones reply."""

Vectors = NDArray[np.float32]
Stamp = tuple[documents.Stamp, bool]
"""The documents, and whether there were vectors."""


class QueryEmbedder(Protocol):
    """The part of `MiniLM` that retrieval uses."""

    @property
    def is_present(self) -> bool:
        """Return whether its files are there."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape [len(texts), dimensions], computed in the batch lane."""

    def embed_now(self, text: str) -> Vectors:
        """The unit vector of one text, for a caller in a lane."""


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    sentences: tuple[str, ...]
    """The one or two that answer, in the document's order."""
    score: float
    """Cosine of question and reply; without vectors, the share of the question's words."""

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    must_hold: str = ""
    """Words that a follow-up adds to its topic: the reply has to be about them as well."""


class Retriever:
    """The index over some folders, built when first asked and again when a document changed."""

    def __init__(
        self,
        folders: Sequence[Folder],
        *,
        embedder: QueryEmbedder,
        cache_dir: Path,
        fetched_dir: Path | None = None,
        check_s: float = CHECK_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`check_s`: how long the folders are taken to be unchanged after a look; `patience_s`: see `ready`."""
        self._folders = tuple(folders)
        self._embedder = embedder
        self._cache = VectorCache(cache_dir, fetched=fetched_dir)
        self._index: Index | None = None
        self._check_s = check_s
        self._patience_s = patience_s
        self._checked_at = 0.0
        self._build: asyncio.Task[Index] | None = None

    async def search(self, questions: Sequence[Question], *, said: str = "") -> Hit | None:
        """The best reply to the first of `questions` that has one. Sentences that occur in `said` are passed over.

        Raises:
            EngineUnavailable: if the lane is full.
        """
        index = await self.ready()
        return await lanes().reply.run(self._search_now, index, tuple(questions), said)

    async def passages(self, questions: Sequence[Question]) -> list[Passage]:
        """The passages that the first of `questions` that has any is about, the nearest first.

        Raises:
            EngineUnavailable: if the lane is full.
        """
        index = await self.ready()
        return await lanes().reply.run(self._passages_now, index, tuple(questions))

    async def ready(self) -> Index:
        """The index as of the documents now; where that takes longer than `patience_s`, as they were before.

        Raises:
            EngineUnavailable: if there is none yet and the lane is full.
        """
        if self._index is not None and time.monotonic() - self._checked_at < self._check_s:
            return self._index
        stamp = await lanes().reply.run(self._stamp)
        if self._index is not None and self._index.stamp == stamp:
            self._checked_at = time.monotonic()
            return self._index
        build = self._building_of(stamp)
        await asyncio.wait([build], timeout=None if self._index is None else self._patience_s)
        if self._index is not None:
            return self._index
        if build.cancelled():
            raise EngineUnavailable("The documents are not indexed, because the server is stopping.")
        return build.result()

    async def close(self) -> None:
        """Give up a rebuild in progress."""
        if self._build is not None and not self._build.done():
            self._build.cancel()
            await asyncio.wait([self._build])

    def _building_of(self, stamp: Stamp) -> asyncio.Task[Index]:
        """The one rebuild in progress. It goes on when those who wait for it are interrupted."""
        build = self._build
        if build is None or build.done() or build.get_loop() is not asyncio.get_running_loop():
            build = asyncio.create_task(self._rebuild(stamp), name="retrieval-index")
            build.add_done_callback(_log_failure)
            self._build = build
        return build

    def _stamp(self) -> Stamp:
        return documents.stamp(self._folders), self._embedder.is_present

    async def _rebuild(self, stamp: Stamp) -> Index:
        started = time.monotonic()
        passages = await lanes().batch.run(documents.load, self._folders)
        vectors: Vectors | None = None
        if self._embedder.is_present and passages:
            texts = _texts(passages)
            known = await lanes().batch.run(self._cache.read)
            unknown = [text for text in dict.fromkeys(texts) if self._cache.key(text) not in known]
            if unknown:
                fresh = await self._embedder.embed(unknown)
                known.update(zip(map(self._cache.key, unknown), fresh, strict=True))
            vectors = np.stack([known[self._cache.key(text)] for text in texts])
            if unknown:
                kept = {key: known[key] for key in map(self._cache.key, texts)}
                await lanes().batch.run(self._cache.write, kept)
        index = await lanes().batch.run(Index, passages, vectors, stamp)
        log.info("Indexed %d passages in %.1f s.", len(passages), time.monotonic() - started)
        self._index, self._checked_at = index, time.monotonic()
        return index

    def _search_now(self, index: Index, questions: tuple[Question, ...], said: str) -> Hit | None:
        for question in questions:
            vector = None if index.vectors is None else self._embedder.embed_now(question.text)
            hit = index.search(question, vector, said=said)
            if hit is not None:
                return hit
        return None

    def _passages_now(self, index: Index, questions: tuple[Question, ...]) -> list[Passage]:
        for question in questions:
            vector = None if index.vectors is None else self._embedder.embed_now(question.text)
            if found := index.passages_for(question, vector):
                return found
        return []


def _texts(passages: Sequence[Passage]) -> list[str]:
    """Return the texts to embed: each passage below its heading, then each sentence."""
    whole = [f"{passage.heading or passage.title}. {passage.text}" for passage in passages]
    return whole + [sentence for passage in passages for sentence in passage.sentences]


def _log_failure(build: asyncio.Task[Index]) -> None:
    if not build.cancelled() and (error := build.exception()) is not None:
        log.warning("The documents could not be indexed: %s", error)


class Index:
    """Passages made searchable. Never changes once it is built, so any thread may read it."""

    def __init__(self, passages: Sequence[Passage], vectors: Vectors | None, stamp: Stamp | None = None) -> None:
        """`vectors`: unit rows for `_texts(passages)`, or None to search by words only."""
        self.passages = passages
        self.stamp = stamp
        self.vectors = vectors
        self._lexicon = Lexicon([f"{passage.title} {passage.heading} {passage.text}" for passage in passages])
        counts = [len(passage.sentences) for passage in passages]
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(int) if counts else np.zeros(1, dtype=int)

    def search(self, question: Question, vector: Vectors | None, *, said: str = "") -> Hit | None:
        """The best reply above the threshold."""
        if not self.passages:
            return None
        if self.vectors is None or vector is None:
            return self._by_words(question, self._best_by_words(question), said)
        for place, likeness, near in self._found(question, vector):
            passage = self.passages[place]
            weights = [
                DENSE_WEIGHT * float(cosine) + (1 - DENSE_WEIGHT) * self._lexicon.overlap(question.text, sentence)
                for cosine, sentence in zip(near, passage.sentences, strict=True)
            ]
            weights[0] += LEAD_BONUS
            sentences = _chosen(passage.sentences, weights, said)
            if sentences:
                return Hit(passage, sentences, likeness)
        return None

    def passages_for(self, question: Question, vector: Vectors | None) -> list[Passage]:
        """The passages above the threshold, the nearest first."""
        if not self.passages:
            return []
        if self.vectors is None or vector is None:
            best = self._best_by_words(question)
            return [self.passages[best]] if self._by_words(question, best, said="") else []
        return [self.passages[place] for place, _, _ in self._found(question, vector)][:MOST_PASSAGES]

    def _found(self, question: Question, vector: Vectors) -> Iterator[tuple[int, float, Vectors]]:
        """Places of passages that answer, the nearest first, with their likeness and that of their sentences."""
        assert self.vectors is not None
        lexical = self._lexicon.scores(question.text)
        cosines = self.vectors @ vector
        of_passages, of_sentences = cosines[: len(self.passages)], cosines[len(self.passages) :]
        of_best_sentences = np.maximum.reduceat(of_sentences, self._starts[:-1])
        likeness = np.maximum(of_passages, of_best_sentences)
        fused = DENSE_WEIGHT * (of_passages + of_best_sentences) / 2 + (1 - DENSE_WEIGHT) * lexical
        for place in map(int, np.argsort(-fused)[:CANDIDATES]):
            if self._is_reply(question, place, float(likeness[place])):
                near = of_sentences[self._starts[place] : self._starts[place + 1]]
                yield place, float(likeness[place]), near

    def _best_by_words(self, question: Question) -> int:
        return int(np.argmax(self._lexicon.scores(question.text)))

    def _is_reply(self, question: Question, place: int, likeness: float) -> bool:
        if not self._holds(question, place):
            return False
        shared = self._lexicon.coverage(question.text, place)
        accepted: Sequence[tuple[float, float]] = ACCEPTED
        if self.passages[place].is_manual:
            accepted = ACCEPTED_OF_MANUAL
            is_bare = len(question.text.split()) == 1
            if is_bare or not (is_question(question.text) or likeness >= SURELY_MEANT):
                return False
        return any(likeness >= cosine and shared >= least for cosine, least in accepted)

    def _holds(self, question: Question, place: int) -> bool:
        added = self._lexicon.coverage(question.must_hold, place)
        return added >= MIN_HELD or not terms(question.must_hold)

    def _by_words(self, question: Question, best: int, said: str) -> Hit | None:
        passage = self.passages[best]
        coverage = self._lexicon.coverage(question.text, best)
        if coverage < MIN_COVERAGE or not self._holds(question, best):
            return None
        weights = [self._lexicon.overlap(question.text, sentence) for sentence in passage.sentences]
        sentences = _chosen(passage.sentences, weights, said)
        return Hit(passage, sentences, coverage) if sentences else None


def is_question(text: str) -> bool:
    return _QUESTION.match(text) is not None or _QUESTION_MARK.match(text[::-1]) is not None


def _chosen(sentences: Sequence[str], weights: Sequence[float], said: str) -> tuple[str, ...]:
    """The best sentence that was not said yet, and the next one where both are short enough."""
    free = [place for place, sentence in enumerate(sentences) if sentence[:SAID_CHARS] not in said]
    if not free:
        return ()
    best = max(free, key=lambda place: weights[place])
    following = best + 1
    if following in free and len(sentences[best]) + len(sentences[following]) <= MAX_REPLY_CHARS:
        return sentences[best], sentences[following]
    return (sentences[best],)
