"""Reranking with the real model, and the arithmetic behind it without."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapp.engines.embedded.recent_vectors import RecentVectors
from voiceapp.engines.embedded.rerank import CANDIDATES, Dense, FusedReranker, never_rising, ranking
from voiceapp.engines.embedded.vocabulary import scores_by_words
from voiceapp.engines.models import tokens
from voiceapp.engines.text_interfaces import Ranking, RerankRequest

pytestmark = pytest.mark.usefixtures("models")

QUERY = "How long is a conversation kept?"
ANSWER = "The words of a conversation are kept for 30 days, so that operators can look into problems."
NEAR = "The transcript is stored for a month."
FAR = "A coin has two sides, and the assistant flips it."
NOISE = [f"The train number {number} leaves the station in the morning." for number in range(150)]


async def rerank(query: str, *documents: str, engine: FusedReranker | None = None) -> Ranking:
    asked, *counted = await tokens.count([query, *documents])
    return await (engine or FusedReranker()).rerank(RerankRequest(asked, tuple(counted)))


def order(found: Ranking) -> list[int]:
    return [result.index for result in found.results]


def score_of(found: Ranking, index: int) -> float:
    return next(result.score for result in found.results if result.index == index)


async def test_it_puts_first_what_answers_and_then_what_means_it() -> None:
    found = await rerank(QUERY, FAR, NEAR, ANSWER)
    assert order(found) == [2, 1, 0]
    assert score_of(found, 2) > 0.8
    assert score_of(found, 0) < 0.2


async def test_scores_are_the_same_whoever_stands_beside() -> None:
    alone = await rerank(QUERY, ANSWER)
    among = await rerank(QUERY, *NOISE[:20], ANSWER)
    assert score_of(among, 20) == pytest.approx(score_of(alone, 0), abs=0.1)
    nothing = await rerank(QUERY, FAR)
    assert score_of(nothing, 0) < 0.2


@pytest.mark.parametrize(
    "query",
    ["Wie lange wird ein Gespräch aufbewahrt?", "对话会保存多久？", "¿Cuánto tiempo se guarda una conversación?"],
)
async def test_a_query_in_another_language_finds_what_answers_it(query: str) -> None:
    found = await rerank(query, *NOISE, FAR, ANSWER)
    assert order(found)[0] == len(NOISE) + 1
    assert score_of(found, len(NOISE) + 1) > 0.3
    assert score_of(found, len(NOISE)) < 0.2


async def test_documents_in_another_language_are_read_however_many_there_are() -> None:
    answer = "Die Worte eines Gesprächs werden 30 Tage lang aufbewahrt."
    found = await rerank(QUERY, *NOISE, answer)
    assert order(found)[0] == len(NOISE)


async def test_a_document_without_words_comes_last_and_fails_nothing() -> None:
    found = await rerank(QUERY, "", FAR, ANSWER, "?!")
    assert order(found)[0] == 2
    assert score_of(found, 0) < 0.1


async def test_the_same_document_twice_scores_the_same() -> None:
    found = await rerank(QUERY, ANSWER, FAR, ANSWER)
    assert score_of(found, 0) == score_of(found, 2)
    assert order(found) == [0, 2, 1]


async def test_a_list_that_is_ranked_again_is_not_read_again() -> None:
    engine = FusedReranker()
    first = await rerank(QUERY, ANSWER, FAR, NEAR, engine=engine)
    read = len(engine._recent)
    assert read == 4
    assert await rerank(QUERY, ANSWER, FAR, NEAR, engine=engine) == first
    await rerank("What is a coin?", ANSWER, FAR, NEAR, engine=engine)
    assert len(engine._recent) == read + 1


async def test_only_the_best_by_words_are_read() -> None:
    engine = FusedReranker()
    await rerank(QUERY, *NOISE, engine=engine)
    assert len(engine._recent) == CANDIDATES + 1


async def test_in_a_script_the_model_cannot_read_words_decide() -> None:
    found = await rerank("语音识别模型", "今天天气很好", "识别模型在这里", "食谱需要鸡蛋")
    assert order(found)[0] == 1


def test_recent_vectors_forget_what_was_not_used_longest() -> None:
    recent = RecentVectors(capacity=2)
    a, b, c = (RecentVectors.key(text) for text in "abc")
    one = np.ones(2, dtype=np.float32)
    recent.put(a, one)
    recent.put(b, one)
    assert recent.get(a) is not None
    recent.put(c, one)
    assert recent.get(b) is None
    assert recent.get(a) is not None
    assert len(recent) == 2


def test_recent_vectors_do_not_keep_their_whole_request() -> None:
    recent = RecentVectors(capacity=2)
    key = RecentVectors.key("a")
    recent.put(key, np.ones((500, 384), dtype=np.float32)[7])
    kept = recent.get(key)
    assert kept is not None
    assert kept.base is None


def test_one_document_has_a_score_by_words() -> None:
    held, partly, none = (float(scores_by_words("revoke the key", [text])[0]) for text in KEYS)
    assert 1 >= held > partly > none == 0


KEYS = ("Revoke the key.", "The key is shown only once.", "Birds sing.")


def test_a_word_that_every_document_holds_weighs_less() -> None:
    documents = ["key revoked", *["key"] * 30]
    both = scores_by_words("key revoked", documents)
    assert both[0] > 3 * both[1]


def test_words_without_weight_score_nothing() -> None:
    assert scores_by_words("what is it", ["it is what it is"]).tolist() == [0.0]
    assert scores_by_words("", [""]).tolist() == [0.0]


@given(st.lists(st.floats(0, 1), max_size=40))
def test_smoothed_scores_never_rise_and_keep_their_mean(scores: list[float]) -> None:
    smooth = never_rising(np.array(scores))
    assert len(smooth) == len(scores)
    assert (np.diff(smooth) <= 1e-12).all()
    assert smooth.sum() == pytest.approx(sum(scores))
    falling = sorted(scores, reverse=True)
    np.testing.assert_allclose(never_rising(np.array(falling)), falling)


@given(st.data())
def test_any_scores_make_a_ranking(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    values = st.floats(0, 1, width=32)
    lexical = np.array(data.draw(st.lists(values, min_size=count, max_size=count)), dtype=np.float32)
    read = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    cosines = np.array(data.draw(st.lists(values, min_size=len(read), max_size=len(read))), dtype=np.float32)
    found = ranking(lexical, Dense(np.array(read), cosines))
    assert sorted(order(found)) == list(range(count))
    assert set(order(found)[: len(read)]) == set(read)
    scores = [result.score for result in found.results]
    assert all(0 <= score <= 1 for score in scores)
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(scores))
