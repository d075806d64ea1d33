"""Embedding in the lengths and kinds that the interface names, with the real model."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.bench.retrieval import QUESTIONS, TRANSLATED, best_first, ndcg, sections
from voiceapp.engines.embedded.embedder import EmbeddedEmbedder
from voiceapp.engines.embedded.embedding import MiniLM
from voiceapp.engines.embedded.pair import DIMENSIONS
from voiceapp.engines.models import tokens
from voiceapp.engines.models.lanes import lanes
from voiceapp.engines.text_interfaces import EmbeddingRequest, EmbeddingResult, TextType

pytestmark = pytest.mark.usefixtures("models")

QUESTION = "How do I stop the assistant while it speaks?"
SAME = "You can interrupt it by talking."
OTHER = "The recipe needs two eggs and some butter."
LENGTHS = (2048, 1536, 1024, 768, 512, 384, 256, 128, 64)

embedder = EmbeddedEmbedder()


async def embed(
    *texts: str, dimension: int = 384, text_type: TextType = "document", dense: bool = True, sparse: bool = False
) -> EmbeddingResult:
    counted = tuple(await tokens.count(texts))
    return await embedder.embed(
        EmbeddingRequest(counted, dimension=dimension, text_type=text_type, dense=dense, sparse=sparse)
    )


async def vectors(*texts: str, dimension: int = 384) -> NDArray[np.float32]:
    dense = (await embed(*texts, dimension=dimension)).dense
    assert dense is not None
    return dense


@pytest.mark.parametrize("dimension", LENGTHS)
async def test_in_every_length_what_means_the_same_is_nearer(dimension: int) -> None:
    found = await vectors(QUESTION, SAME, OTHER, dimension=dimension)
    assert found.shape == (3, dimension)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2


async def test_a_shorter_vector_is_the_beginning_of_the_long_one() -> None:
    whole, short = await vectors(QUESTION), await vectors(QUESTION, dimension=128)
    beginning = whole[0, :128] / np.linalg.norm(whole[0, :128])
    np.testing.assert_allclose(short[0], beginning, atol=1e-6)


async def test_a_longer_vector_says_more_of_shared_words() -> None:
    name, namesake = "What does DRAIN_S do?", "The variable DRAIN_S changes that time."
    short = await vectors(name, namesake, QUESTION, dimension=DIMENSIONS)
    long = await vectors(name, namesake, QUESTION, dimension=1536)
    np.testing.assert_allclose(long[0, :DIMENSIONS] / np.linalg.norm(long[0, :DIMENSIONS]), short[0], atol=1e-6)
    assert long[0] @ long[1] - long[0] @ long[2] > short[0] @ short[1] - short[0] @ short[2]


@pytest.mark.parametrize(
    "translated",
    [
        "Wie stoppe ich den Assistenten, während er spricht?",
        "助手说话时怎么打断它？",
        "Comment couper la parole à l'assistant ?",
    ],
)
async def test_a_question_in_another_language_is_near_its_translation(translated: str) -> None:
    asked, same, other = await vectors(translated, QUESTION, OTHER, dimension=1024)
    assert asked @ same > asked @ other + 0.2


async def test_the_manual_is_found_by_questions_in_five_languages() -> None:
    manual = sections()
    places, held = list(manual), await vectors(*manual.values(), dimension=1024)
    right = [places.index((one["page"], one["heading"])) for one in json.loads(QUESTIONS.read_text())]
    found = {}
    for language, translated in json.loads(TRANSLATED.read_text()).items():
        likeness = await vectors(*translated[::5], dimension=1024) @ held.T
        orders = [best_first(row) for row in likeness]
        found[language] = sum(map(ndcg, orders, right[::5])) / len(orders)
    assert np.mean(list(found.values())) > 0.55, found


async def test_a_text_without_content_words_still_has_a_vector() -> None:
    (vector,) = await vectors("it is of the", dimension=1024)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


async def test_a_vector_does_not_depend_on_its_neighbours() -> None:
    alone = await vectors(QUESTION)
    among = await vectors(OTHER * 20, QUESTION, "a", SAME, "b")
    np.testing.assert_allclose(alone[0], among[1], atol=1e-6)


async def test_kinds_come_as_asked() -> None:
    both = await embed(QUESTION, sparse=True)
    only = await embed(QUESTION, dense=False, sparse=True)
    assert both.dense is not None
    assert only.dense is None
    assert both.sparse == only.sparse
    assert (await embed(QUESTION)).sparse is None


async def test_text_type_changes_sparse_vectors_and_not_dense_ones() -> None:
    query = await embed(QUESTION, sparse=True, text_type="query")
    document = await embed(QUESTION, sparse=True, text_type="document")
    np.testing.assert_allclose(query.dense, document.dense, atol=1e-6)  # type: ignore[arg-type]
    assert query.sparse != document.sparse


async def test_cancelling_ends_the_work_after_the_batch_in_progress() -> None:
    (text,) = await tokens.count(["word " * 240])
    batch = lanes().batch
    may_run = threading.Event()
    blocked = asyncio.create_task(batch.run(may_run.wait, 10.0))
    work = asyncio.create_task(MiniLM().embed_tokens([text.ids] * 200))
    await asyncio.sleep(0)
    assert batch.pending == 2
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    may_run.set()
    assert await blocked
    assert batch.pending == 0


async def test_a_long_list_lets_others_in_between() -> None:
    (text,) = await tokens.count(["word " * 240])
    work = asyncio.create_task(MiniLM().embed_tokens([text.ids] * 40))
    await asyncio.sleep(0)
    assert lanes().batch.pending == 1
    await lanes().batch.run(int)
    assert not work.done()
    await work


async def test_a_text_of_8192_tokens_is_read_to_its_end() -> None:
    filler = "The meeting was held in a large room. "
    ending = "Penguins are birds that live near the south pole and eat fish. "
    long, cut, birds = await vectors(filler * 600 + ending * 120, filler * 600, "What do penguins eat?")
    assert long @ birds > cut @ birds + 0.1
