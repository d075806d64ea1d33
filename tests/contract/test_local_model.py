"""A language model inside the process, through the real server: a folder, a restart, and the usual names serve it."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from tests.engines import tiny_model
from tests.realtime.product import Product, make_home


def test_a_model_in_a_folder_answers_by_the_usual_names(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("product")
    tiny_model.make(folder / "tiny")
    product = Product(make_home(folder / "home"), folder / "served", CHAT_MODEL_DIR=str(folder / "tiny"))
    try:
        with openai.OpenAI(
            api_key=product.keys["good"], base_url=f"{product.origin}/compatible-mode/v1", max_retries=0
        ) as client:
            for name in ("tiny", "gpt-4o-mini"):
                answer = client.chat.completions.create(model=name, messages=[{"role": "user", "content": "Hello"}])
                assert answer.choices[0].message.content == tiny_model.SENTENCE
            stream = client.chat.completions.create(
                model="qwen-plus", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
        assert "".join(pieces) == tiny_model.SENTENCE
        assert len(pieces) > 3
        rows = product.rows("select distinct model from accounts_usagerecord")
        assert [row["model"] for row in rows] == ["tiny"]
    finally:
        product.stop()
