"""`python -m tests.bench.retrieval`: how well embedding and reranking find, by questions written for this product's
manual, each answered by one of its sections: nDCG@10."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import django
import numpy as np
from numpy.typing import NDArray

from tests.bench import report
from tests.bench.clips import ROOT

QUESTIONS = ROOT / "tests" / "bench" / "manual_questions.json"
TRANSLATED = ROOT / "tests" / "bench" / "manual_questions_translated.json"
"""The same questions in the same order, in five languages."""
DIMENSIONS = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
CUTOFF = 10

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
    elsewhere: dict[str, dict[int, float]]
    """The same for the questions in another language, by that."""
    rerank_elsewhere: dict[str, float]


def main() -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.retrieval", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "var" / "bench" / "retrieval.json")
    chosen = parser.parse_args()
    print_quality(found := asyncio.run(quality()))
    report.write(chosen.output, {"machine": report.machine(), "quality": asdict(found)})
    print(f"All figures: {chosen.output}")


def sections() -> dict[tuple[str, str], str]:
    """What is said of this program, by page and heading; a section is read below its page's title."""
    found: dict[tuple[str, str], str] = {}
    for part in re.split(r"^# \[", (ROOT / "docs" / "spoken" / "manual.md").read_text(), flags=re.MULTILINE)[1:]:
        opening, *rest = re.split(r"^##\s+(.*)$", part, flags=re.MULTILINE)
        line, _, text = opening.partition("\n")
        title, page = re.findall(r"(.*)\]\(.*/\d+-(.*)\.md\)", line)[0]
        for heading, body in zip(["", *rest[::2]], [text, *rest[1::2]], strict=True):
            found[page, heading.strip()] = ". ".join(filter(None, (title, heading.strip(), body.strip())))
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


def print_quality(found: Quality) -> None:
    print(f"Search in the manual: {found.questions} questions, {found.sections} sections, nDCG@{CUTOFF}")
    print(f"  BM25 {found.bm25:.3f}   rerank {found.rerank:.3f}   sparse vectors {found.sparse:.3f}")
    print("  dense vectors by dimension: " + "  ".join(f"{d}: {value:.3f}" for d, value in found.dense.items()))
    print("  the questions in other languages, the manual in English:")
    for language, dense in found.elsewhere.items():
        by_dimension = "  ".join(f"{d}: {value:.3f}" for d, value in dense.items())
        print(f"    {language}  rerank {found.rerank_elsewhere[language]:.3f}   {by_dimension}")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    main()
