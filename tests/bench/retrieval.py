"""`python -m tests.bench.retrieval`: how well embedding and reranking find, and how fast they do by HTTP.

Quality: questions written for this product's manual, each answered by one of its sections, nDCG@10. Speed: the same
texts through the real server and through the engine called bare, in turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp
import django
import numpy as np
from numpy.typing import NDArray

from tests.bench import report
from tests.bench.clips import ROOT
from tests.bench.serving import Server

QUESTIONS = ROOT / "tests" / "bench" / "manual_questions.json"
TRANSLATED = ROOT / "tests" / "bench" / "manual_questions_translated.json"
"""The same questions in the same order, in five languages."""
DIMENSIONS = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
CUTOFF = 10
BATCH_TEXTS = 10
TEXT_TOKENS = 128
PASSAGES = 100
PASSAGE_TOKENS = 200
CALLERS = 4
ROUND_S = 3.0
AIM_SHARE = 0.85
AIM_RERANK_S = 1.5

Order = Sequence[int]


@dataclass(frozen=True, slots=True)
class Quality:
    """nDCG@10 over all questions."""

    questions: int
    sections: int
    bm25: float
    rerank: float
    sparse: float
    dense: dict[int, float]
    """By dimension."""
    elsewhere: dict[str, dict[int, float]]
    """The same for the questions in another language, by that."""
    rerank_elsewhere: dict[str, float]


@dataclass(frozen=True, slots=True)
class Speed:
    bare_texts_per_s: float
    http_texts_per_s: float
    rerank_p50_s: float
    rerank_p95_s: float
    known_p50_s: float
    """The same documents again, for another question."""

    @property
    def share(self) -> float:
        return self.http_texts_per_s / self.bare_texts_per_s


def main() -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.retrieval", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "bench" / "retrieval.json")
    chosen = parser.parse_args()
    print_quality(found := asyncio.run(quality()))
    with tempfile.TemporaryDirectory(prefix="voiceapp-bench-") as folder:
        server = Server(Path(folder))
        key = server.prepare()
        with server:
            speed = asyncio.run(measure(f"http://127.0.0.1:{server.port}", key, rounds=2 if chosen.quick else 5))
    print_speed(speed)
    facts = report.machine()
    report.write(
        chosen.output,
        {"machine": facts, "quality": asdict(found), "speed": asdict(speed) | {"share": speed.share}},
    )
    print(f"All figures: {chosen.output}")


def sections() -> dict[tuple[str, str], str]:
    """The manual by page and heading; a section is read below its page's title."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted((ROOT / "docs" / "manual").glob("*.md")):
        opening, *rest = re.split(r"^##\s+(.*)$", path.read_text(), flags=re.MULTILINE)
        title, _, text = opening.partition("\n")
        title = title.removeprefix("# ").strip()
        found[path.stem, ""] = f"{title}. {text.strip()}"
        for heading, body in zip(rest[::2], rest[1::2], strict=True):
            found[path.stem, heading.strip()] = f"{title}. {heading.strip()}. {body.strip()}"
    return found


async def quality() -> Quality:
    """Rank all sections for every question, in each of the ways there are."""
    from voiceapp.engines.embedded.embedder import EmbeddedEmbedder
    from voiceapp.engines.embedded.rerank import FusedReranker
    from voiceapp.engines.embedded.vocabulary import scores_by_words
    from voiceapp.engines.models import tokens
    from voiceapp.engines.text_interfaces import EmbeddingRequest, RerankRequest

    manual = sections()
    asked = json.loads(QUESTIONS.read_text())
    places = list(manual)
    right = [places.index((question["page"], question["heading"])) for question in asked]
    documents = tuple(await tokens.count(list(manual.values())))
    questions = tuple(await tokens.count([question["question"] for question in asked]))
    embedder, reranker = EmbeddedEmbedder(), FusedReranker()

    def mean(orders: Sequence[Order]) -> float:
        return sum(map(ndcg, orders, right)) / len(right)

    async def vectors(texts: tuple[Any, ...], dimension: int) -> NDArray[np.float32]:
        found = (await embedder.embed(EmbeddingRequest(texts, dimension=dimension))).dense
        assert found is not None
        return found

    held_by = {dimension: await vectors(documents, dimension) for dimension in DIMENSIONS}

    async def by_dimension(asked: tuple[Any, ...]) -> dict[int, float]:
        return {
            dimension: mean([best_first(row) for row in await vectors(asked, dimension) @ held_by[dimension].T])
            for dimension in DIMENSIONS
        }

    async def reranked(asked: tuple[Any, ...]) -> float:
        rankings = [await reranker.rerank(RerankRequest(question, documents)) for question in asked]
        return mean([[result.index for result in ranking.results] for ranking in rankings])

    elsewhere, rerank_elsewhere = {}, {}
    for language, translated in json.loads(TRANSLATED.read_text()).items():
        counted = tuple(await tokens.count(translated))
        elsewhere[language] = await by_dimension(counted)
        rerank_elsewhere[language] = await reranked(counted)
    held = (await embedder.embed(EmbeddingRequest(documents, dense=False, sparse=True))).sparse or ()
    queries = (
        await embedder.embed(EmbeddingRequest(questions, text_type="query", dense=False, sparse=True))
    ).sparse or ()
    weights = [{entry.index: entry.value for entry in entries} for entries in held]
    products = [
        [sum(entry.value * known.get(entry.index, 0.0) for entry in query) for known in weights] for query in queries
    ]
    texts = [document.text for document in documents]
    return Quality(
        questions=len(questions),
        sections=len(documents),
        bm25=mean([best_first(scores_by_words(question.text, texts)) for question in questions]),
        rerank=await reranked(questions),
        sparse=mean([best_first(np.array(row)) for row in products]),
        dense=await by_dimension(questions),
        elsewhere=elsewhere,
        rerank_elsewhere=rerank_elsewhere,
    )


def best_first(scores: NDArray[Any]) -> Order:
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def ndcg(order: Order, right: int) -> float:
    """Of one right answer: 1 for the first place, less for each later one, 0 beyond the cutoff."""
    rank = list(order).index(right) + 1
    return 1 / math.log2(rank + 1) if rank <= CUTOFF else 0.0


async def measure(base_url: str, key: str, *, rounds: int) -> Speed:
    """Texts per second, bare and by HTTP in turns; then one rerank after the other."""
    from voiceapp.engines.embedded.embedder import EmbeddedEmbedder
    from voiceapp.engines.models import tokens
    from voiceapp.engines.text_interfaces import EmbeddingRequest

    passages = Passages()
    batch = await passages.make(BATCH_TEXTS, TEXT_TOKENS)
    embedder = EmbeddedEmbedder()

    async with aiohttp.ClientSession(base_url, headers={"Authorization": f"Bearer {key}"}) as session:

        async def post(path: str, body: dict[str, Any]) -> bytes:
            async with session.post(path, json=body) as answer:
                content = await answer.read()
                if answer.status != 200:
                    raise SystemExit(f"The server refused: {content.decode()}")
                return content

        async def bare() -> None:
            counted = tuple(await tokens.count(batch))
            await embedder.embed(EmbeddingRequest(counted, dimension=1024))

        async def by_http() -> None:
            body = {"model": "text-embedding-v4", "input": {"texts": batch}, "parameters": {"dimension": 1024}}
            await post("/api/v1/services/embeddings/text-embedding/text-embedding", body)

        await bare()
        await by_http()
        rates: dict[str, list[float]] = {"bare": [], "http": []}
        for _ in range(rounds):
            rates["bare"].append(await rate(bare))
            rates["http"].append(await rate(by_http))

        async def rerank(query: str, documents: list[str]) -> float:
            body = {"model": "qwen3-rerank", "input": {"query": query, "documents": documents}}
            begun = time.monotonic()
            await post("/api/v1/services/rerank/text-rerank/text-rerank", body)
            return time.monotonic() - begun

        new, known = [], []
        for _ in range(4 * rounds):
            documents = await passages.make(PASSAGES, PASSAGE_TOKENS)
            new.append(await rerank("How do I stop the assistant while it speaks?", documents))
            known.append(await rerank("Which port does the server listen on?", documents))
    return Speed(
        bare_texts_per_s=report.percentile(rates["bare"], 50),
        http_texts_per_s=report.percentile(rates["http"], 50),
        rerank_p50_s=report.percentile(new, 50),
        rerank_p95_s=report.percentile(new, 95),
        known_p50_s=report.percentile(known, 50),
    )


async def rate(call: Any) -> float:
    """Texts per second of some callers who ask again and again."""
    begun = time.monotonic()
    calls = 0

    async def ask() -> None:
        nonlocal calls
        while time.monotonic() - begun < ROUND_S:
            await call()
            calls += 1

    await asyncio.gather(*(ask() for _ in range(CALLERS)))
    return calls * BATCH_TEXTS / (time.monotonic() - begun)


class Passages:
    """Texts nobody has seen before, of the manual's words, each of an exact number of tokens."""

    def __init__(self) -> None:
        self._words = " ".join(sections().values()).split()
        self._random = random.Random(7)

    async def make(self, count: int, length: int) -> list[str]:
        from voiceapp.engines.models import tokens

        drafts = [" ".join(self._random.choices(self._words, k=length)) for _ in range(count)]
        return [text.text for text in await tokens.count(drafts, limit=length)]


def print_quality(found: Quality) -> None:
    print(f"Search in the manual: {found.questions} questions, {found.sections} sections, nDCG@{CUTOFF}")
    print(f"  BM25 {found.bm25:.3f}   rerank {found.rerank:.3f}   sparse vectors {found.sparse:.3f}")
    print("  dense vectors by dimension: " + "  ".join(f"{d}: {value:.3f}" for d, value in found.dense.items()))
    print("  the questions in other languages, the manual in English:")
    for language, dense in found.elsewhere.items():
        by_dimension = "  ".join(f"{d}: {value:.3f}" for d, value in dense.items())
        print(f"    {language}  rerank {found.rerank_elsewhere[language]:.3f}   {by_dimension}")


def print_speed(speed: Speed) -> None:
    print(f"Embedding, {BATCH_TEXTS} texts of {TEXT_TOKENS} tokens a call, {CALLERS} callers")
    print(
        f"  bare {speed.bare_texts_per_s:.0f} texts/s   by HTTP {speed.http_texts_per_s:.0f} texts/s   "
        f"{speed.share:.0%} (aim {AIM_SHARE:.0%})"
    )
    print(f"Rerank by HTTP, {PASSAGES} documents of {PASSAGE_TOKENS} tokens")
    print(
        f"  p50 {speed.rerank_p50_s:.2f} s   p95 {speed.rerank_p95_s:.2f} s (aim {AIM_RERANK_S} s)   "
        f"known documents p50 {speed.known_p50_s:.2f} s"
    )


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    main()
