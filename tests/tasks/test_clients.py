"""The vendor's own library, blocking and asynchronous, with a server of ours that asks a second one of ours.

That second one draws by a server with OpenAI's interface and films by a service elsewhere, so that a call of the
library comes past every way there is: library → ours → ours → elsewhere, and the results back, copied at each.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import dashscope
import pytest
from dashscope import ImageSynthesis, VideoSynthesis
from dashscope.aigc.image_generation import AioImageGeneration
from dashscope.aigc.image_synthesis import AioImageSynthesis
from dashscope.aigc.video_synthesis import AioVideoSynthesis
from dashscope.audio.asr import Transcription
from dashscope.embeddings import BatchTextEmbedding

from tests.realtime.product import Product, make_home
from tests.tasks.conftest import PATIENCE_S
from tests.tasks.elsewhere import FOLDER, Elsewhere, elsewhere
from tests.tasks.test_images import MP4, PNG
from voiceapp.engines.openai.forms import MultipartForm


@pytest.fixture(scope="module")
def far() -> Iterator[Elsewhere]:
    with elsewhere() as server:
        yield server


@pytest.fixture(scope="module")
def product(far: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder: Path = tmp_path_factory.mktemp("products")
    home = make_home(folder / "home")
    second = Product(
        home,
        folder / "second",
        IMAGES_BASE_URL=f"{far.url}/v1",
        IMAGES_MODEL="painter",
        UPSTREAM_BASE_URL=far.url,
        UPSTREAM_API_KEY="sk-of-the-service",
        UPSTREAM_VIDEO_MODELS="wan2.2-t2v-plus",
    )
    try:
        first = Product(
            home,
            folder / "first",
            MAX_UPLOAD_BYTES="4000000",
            UPSTREAM_BASE_URL=second.origin,
            UPSTREAM_API_KEY=second.keys["good"],
            UPSTREAM_IMAGE_MODELS="wanx-v1,qwen-image",
            UPSTREAM_VIDEO_MODELS="wan2.2-t2v-plus",
        )
        try:
            yield first
        finally:
            first.stop()
    finally:
        second.stop()


@pytest.fixture(autouse=True)
def _library(product: Product, far: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashscope, "base_http_api_url", f"{product.origin}/api/v1")
    monkeypatch.setattr(dashscope, "api_key", product.keys["good"])
    far.asked.clear()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture on the user's disk."""
    path = tmp_path / "meine katze.png"
    path.write_bytes(PNG)
    return path


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        content: bytes = answer.read()
    return content


class Tolerant(urllib.request.HTTPErrorProcessor):
    """Every status is an answer."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response


def uploaded(product: Product, path: Path) -> tuple[int, dict[str, Any]]:
    """Status and body of the response to a file that is sent."""
    form = MultipartForm({})
    form.add_file("file", path)
    headers = {"Authorization": f"Bearer {product.keys['good']}", "Content-Type": form.content_type}
    request = urllib.request.Request(f"{product.origin}/api/v1/uploads", data=form.body(), headers=headers)
    with urllib.request.build_opener(Tolerant).open(request, timeout=PATIENCE_S) as answer:
        return answer.status, json.load(answer)


def test_pictures_are_drawn(far: Elsewhere) -> None:
    done = ImageSynthesis.call("wanx-v1", "a cat", n=2, size="512*512")
    assert done.status_code == HTTPStatus.OK, done
    assert done.output.task_status == "SUCCEEDED", done
    assert [fetched(result.url) for result in done.output.results] == [PNG, PNG]
    assert done.usage.image_count == 2
    assert done.output["task_metrics"] == {"TOTAL": 2, "SUCCEEDED": 2, "FAILED": 0}
    asked = far.asked["/v1/images/generations"]
    assert [(one["prompt"], one["model"], one["n"], one["size"]) for one in asked] == [
        ("a cat", "painter", 1, "512x512")
    ] * 2


@pytest.mark.parametrize("task", [None, "image2image"])  # what the library makes of a model's name
def test_a_picture_on_the_users_disk_is_changed(
    task: str | None, far: Elsewhere, picture: Path, product: Product
) -> None:
    done = ImageSynthesis.call(
        "qwen-image", "make it grey", task=task, images=[f"file://{picture}"], base_image_url=str(picture)
    )
    assert done.status_code == HTTPStatus.OK, done
    assert done.output.task_status == "SUCCEEDED", done
    assert fetched(done.output.results[0].url) == PNG
    (edit,) = far.asked["/v1/images/edits"]
    assert (edit["image[]"], edit["prompt"]) == (PNG, b"make it grey")
    kept = product.rows("SELECT key, size FROM tasks_upload")
    assert {row["size"] for row in kept} == {len(PNG)}
    assert all(row["key"].endswith("/meine katze.png") for row in kept)


async def test_the_asynchronous_classes_create_follow_list_and_cannot_cancel_what_is_over() -> None:
    created = await AioImageSynthesis.async_call("wanx-v1", "a dog", n=1)
    assert created.status_code == HTTPStatus.OK, created
    assert created.output.task_status == "PENDING"
    assert (await AioImageSynthesis.fetch(created)).output.task_id == created.output.task_id
    done = await AioImageSynthesis.wait(created)
    assert done.output.task_status == "SUCCEEDED", done
    assert fetched(done.output.results[0].url) == PNG
    listed = await AioImageSynthesis.list(model_name="wanx-v1", status="SUCCEEDED")
    assert listed.status_code == HTTPStatus.OK
    assert created.output.task_id in json.dumps(listed.output)
    refused = await AioImageSynthesis.cancel(created)
    assert (refused.status_code, refused.code) == (400, "UnsupportedOperation")
    unknown = await AioImageSynthesis.fetch("0f7ba5d5-0000-4000-8000-000000000000")
    assert unknown.output.task_status == "UNKNOWN"


async def test_a_message_with_a_picture_is_answered_with_one(far: Elsewhere, picture: Path) -> None:
    message = {"role": "user", "content": [{"text": "make it blue"}, {"image": f"file://{picture}"}]}
    created = await AioImageGeneration.async_call("wanx-v1", messages=[message], n=1)
    assert created.status_code == HTTPStatus.OK, created
    done = await AioImageGeneration.wait(created)
    assert done.output.task_status == "SUCCEEDED", done
    (choice,) = done.output.choices
    assert fetched(choice.message.content[0]["image"]) == PNG
    (edit,) = far.asked["/v1/images/edits"]
    assert (edit["image"], edit["prompt"]) == (PNG, b"make it blue")


async def test_films_are_made_of_a_picture_on_the_users_disk(far: Elsewhere, picture: Path) -> None:
    done = await AioVideoSynthesis.call("wan2.2-t2v-plus", prompt="a cat", img_url=f"file://{picture}", duration=5)
    assert done.status_code == HTTPStatus.OK, done
    assert done.output.task_status == "SUCCEEDED", done
    assert fetched(done.output.video_url) == MP4
    assert done.output.actual_prompt == "a very fine cat"
    assert (done.usage["video_count"], done.usage["duration"]) == (1, 1)
    (asked,) = far.asked["/api/v1/services/aigc/video-generation/video-synthesis"]
    assert asked["model"] == "wan2.2-t2v-plus"
    assert asked["parameters"]["duration"] == 5
    (file,) = far.asked["/store"]
    assert file["file"] == PNG
    assert asked["input"]["img_url"] == f"oss://{file['key'].decode()}"
    assert asked["input"]["img_url"].startswith(f"oss://{FOLDER}/")


def test_films_are_made_by_the_blocking_classes_too() -> None:
    created = VideoSynthesis.async_call("wan2.2-t2v-plus", prompt="a cat")
    assert created.status_code == HTTPStatus.OK, created
    assert fetched(VideoSynthesis.wait(created).output.video_url) == MP4


@pytest.mark.parametrize(
    "model", [BatchTextEmbedding.Models.text_embedding_async_v1, BatchTextEmbedding.Models.text_embedding_async_v2]
)
def test_a_file_of_texts_is_embedded(model: str, tmp_path: Path, product: Product) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("one text\nanother text\n")
    _, sent = uploaded(product, texts)
    created = BatchTextEmbedding.async_call(model, sent["output"]["url"], text_type="query")
    assert created.status_code == HTTPStatus.OK, created
    done = BatchTextEmbedding.wait(created)
    assert done.output.task_status == "SUCCEEDED", done
    lines = [json.loads(line) for line in fetched(done.output.url).splitlines()]
    assert [(line["text_index"], len(line["embedding"])) for line in lines] == [(0, 1536), (1, 1536)]
    assert done.usage["total_tokens"] == sum(line["usage"]["total_tokens"] for line in lines) > 0


def test_each_generation_finds_the_rows_of_a_list_where_it_looks(product: Product) -> None:
    assert BatchTextEmbedding.list().status_code == HTTPStatus.OK

    def listed(agent: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {product.keys['good']}", "User-Agent": agent}
        url = f"{product.origin}/api/v1/tasks?page_no=1&page_size=10"
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE_S) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    created = ImageSynthesis.async_call("wanx-v1", "a cat", n=1).output.task_id
    old = listed("dashscope/1.25.3; python/3.11.7; platform/Linux; processor/x86_64")
    new = listed("dashscope/2.0.2; python/3.11.7; platform/Linux; processor/x86_64")
    assert created in [row["task_id"] for row in old["data"]]
    assert "tasks" not in old
    assert new["tasks"] == new["data"]
    assert created in [row["task_id"] for row in new["tasks"]]


@pytest.mark.parametrize(("megabytes", "status"), [(3, 200), (5, 413)])
def test_an_upload_may_be_larger_than_other_bodies_and_no_larger_than_that(
    megabytes: int, status: int, product: Product, tmp_path: Path
) -> None:
    recording = tmp_path / "long.wav"
    recording.write_bytes(bytes(1_000_000 * megabytes))
    answered, sent = uploaded(product, recording)
    assert answered == status
    if status == HTTPStatus.OK:  # which holds no sound that could be read
        failed = Transcription.wait(Transcription.async_call("paraformer-v2", [sent["output"]["url"]]))
        assert failed.output.task_status == "FAILED"
