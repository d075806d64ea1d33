"""Pictures and films, by servers elsewhere that answer at once and by services that take their time."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np
import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from pytest_django.fixtures import Settings

from tests.models import offered as offered_models
from tests.tasks.conftest import PATIENCE_S, Program, files_at
from tests.web import listening
from voiceapp.accounts.models import UsageRecord
from voiceapp.catalogue.cards import ModelCard, ModelKind
from voiceapp.images import making
from voiceapp.images.making import GIVING_UP_S
from voiceapp.leases.loop import Loop
from voiceapp.tasks.models import Task
from voiceapp.tasks.work.queue import TaskQueue

pytestmark = pytest.mark.django_db(transaction=True)

DRAW = "aigc/text2image/image-synthesis"
CHANGE = "aigc/image2image/image-synthesis"
BY_MESSAGE = "aigc/image-generation/generation"
FILM = "aigc/video-generation/video-synthesis"
FILM_FROM_PICTURES = "aigc/image2video/video-synthesis"
KEY = "sk-of-the-images-server"


def encoded(codec: str, form: str, frames: int = 1) -> bytes:
    sink = io.BytesIO()
    with av.open(sink, "w", format=form) as container:
        stream = container.add_stream(codec, rate=5)
        stream.width = stream.height = 64
        stream.pix_fmt = "rgb24" if codec == "png" else "yuv420p"
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 20 * number + 40, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return sink.getvalue()


PNG = encoded("png", "image2pipe")
MP4 = encoded("mpeg4", "mp4", frames=5)


@dataclass
class ImagesServer:
    """A server with OpenAI's interface for images."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    answers: list[web.Response] = field(default_factory=list)
    """Of the next requests; a picture when there is none left."""

    async def generate(self, request: web.Request) -> web.Response:
        self.keys.add(request.headers["Authorization"])
        self.asked.append(await request.json())
        return self._answer()

    async def edit(self, request: web.Request) -> web.Response:
        form = await request.post()
        files = {name: part.file.read() for name, part in form.items() if isinstance(part, web.FileField)}
        self.asked.append({**form, **files})
        return self._answer()

    async def made(self, request: web.Request) -> web.Response:
        return web.Response(body=PNG)

    def _answer(self) -> web.Response:
        picture = web.json_response({"data": [{"b64_json": base64.b64encode(PNG).decode()}]})
        return self.answers.pop(0) if self.answers else picture


@dataclass
class Service:
    """A service of the same interface: tasks are created, and take a few looks to be done."""

    url: str = ""
    output: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    looks_needed: int = 2
    status: str = "RUNNING"
    is_canceling: bool = True
    """Whether it gives up what has not begun."""
    canceled: list[str] = field(default_factory=list)
    created: list[dict[str, Any]] = field(default_factory=list)
    looks: int = 0
    looked: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, request: web.Request) -> web.Response:
        assert request.headers["X-DashScope-Async"] == "enable"
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        self.created.append({"path": request.path, **await request.json()})
        return web.json_response({"output": {"task_id": "there-1", "task_status": "PENDING"}, "request_id": "r"})

    async def look(self, request: web.Request) -> web.Response:
        assert request.match_info["task"] == "there-1"
        self.looks += 1
        self.looked.set()
        running = {"task_id": "there-1", "task_status": self.status}
        over = self.looks > self.looks_needed
        output = {"task_id": "there-1", **self.output} if over else running
        return web.json_response({"output": output, "usage": self.usage if over else None, "request_id": "r"})

    async def cancel(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        assert not await request.read()
        if not self.is_canceling:
            return web.json_response({"code": "UnsupportedOperation", "message": "It has begun."}, status=400)
        self.canceled.append(request.match_info["task"])
        return web.json_response({"request_id": "r"})


@pytest.fixture
async def images_server() -> AsyncIterator[ImagesServer]:
    server = ImagesServer()
    routes = (
        web.post("/v1/images/generations", server.generate),
        web.post("/v1/images/edits", server.edit),
        web.get("/made.png", server.made),
    )
    async with listening(*routes) as address:
        server.url = f"{address}/v1"
        yield server


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    routes = (
        web.post("/api/v1/services/{path:.*}", made.create),
        web.get("/api/v1/tasks/{task}", made.look),
        web.post("/api/v1/tasks/{task}/cancel", made.cancel),
    )
    async with listening(*routes) as address:
        made.url = address
        yield made


@pytest.fixture
def offered(settings: Settings) -> Iterator[Callable[..., None]]:
    """Puts models into the catalogue."""
    settings.FETCH_ALLOWED_NETWORKS = ["127.0.0.0/8"]

    def offer(name: str, kind: ModelKind, provider: str, url: str, **options: Any) -> None:
        given = {"base_url": url, "api_key": KEY, "model": f"{name}-there", **options}
        card = ModelCard(name, kind, f"voiceapp.engines.{provider}", options=given)
        offers.enter_context(offered_models(settings, [*settings.VOICE_MODELS, card]))

    with ExitStack() as offers:
        yield offer


@pytest.fixture
def drawing(offered: Callable[..., None], images_server: ImagesServer) -> ImagesServer:
    offered("painter", "image", "openai.images.OpenAIImages", images_server.url, timeout_s=PATIENCE_S)
    return images_server


@pytest.fixture
def relayed(offered: Callable[..., None], service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The service, which is looked at more often than one far away."""
    monkeypatch.setattr(making, "FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(making, "LAST_LOOK_S", 0.2)
    for name, kind in (("far-painter", "image"), ("far-filmer", "video")):
        offered(name, kind, "upstream.http.tasks.RelayedTasks", service.url)
    return service


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        (DRAW, {"input": {"prompt": "a cat"}}, "pictures"),
        (CHANGE, {"input": {"prompt": "a cat", "images": ["https://8.8.8.8/a.png"]}}, "pictures"),
        (BY_MESSAGE, {"input": {"messages": [{"content": [{"text": "a cat"}]}]}}, "pictures"),
        (FILM, {"input": {"prompt": "a cat"}}, "films"),
    ],
)
async def test_without_a_model_elsewhere_nothing_is_accepted(
    program: Program, path: str, body: dict[str, Any], what: str
) -> None:
    answer = await program.post(f"/api/v1/services/{path}", {"model": "wanx-v1", **body}, **ASYNC)
    assert answer.status_code == 400
    assert f"makes no {what}" in answer.json()["message"]
    assert not await Task.objects.aexists()


ASYNC = {"X-DashScope-Async": "enable"}


async def test_each_picture_is_a_part_of_its_own(program: Program, worker: Loop, drawing: ImagesServer) -> None:
    refusal = web.json_response({"error": {"message": "That is not drawn here."}}, status=400)
    good = web.json_response({"data": [{"b64_json": base64.b64encode(PNG).decode()}]})
    drawing.answers = [good, refusal]
    task_id = await program.create(
        DRAW,
        {
            "model": "painter",
            "input": {"prompt": "a cat", "negative_prompt": "dogs"},
            "parameters": {"n": 3, "size": "512*768", "seed": 7},
        },
    )
    done = await program.follow(task_id)

    assert done["output"]["task_status"] == "SUCCEEDED"
    assert done["output"]["task_metrics"] == {"TOTAL": 3, "SUCCEEDED": 2, "FAILED": 1}
    assert done["usage"] == {"image_count": 2}
    failed = [item for item in done["output"]["results"] if "code" in item]
    assert [item["message"] for item in failed] == ["The server of images refused the request: That is not drawn here."]
    for item in done["output"]["results"]:
        if "url" in item:
            assert await program.fetch(item["url"]) == PNG
    asked = sorted(drawing.asked, key=lambda one: one["seed"])
    assert [one["seed"] for one in asked] == [7, 8, 9]
    assert asked[0] == {
        "prompt": "a cat",
        "n": 1,
        "model": "painter-there",
        "size": "512x768",
        "negative_prompt": "dogs",
        "seed": 7,
    }
    assert drawing.keys == {f"Bearer {KEY}"}
    assert KEY not in str(done)
    assert await UsageRecord.objects.filter(unit="image_count", family="image").acount() == 2


async def test_pictures_to_change_are_fetched_and_sent(program: Program, worker: Loop, drawing: ImagesServer) -> None:
    async with files_at({"cat.png": PNG, "no.png": b"<html>"}) as at:
        body = {"model": "painter", "input": {"prompt": "with a hat", "images": [at("cat.png")]}}
        done = await program.follow(await program.create(CHANGE, body))
        assert done["output"]["task_status"] == "SUCCEEDED"
        assert drawing.asked[0].items() >= {"prompt": "with a hat", "image": PNG}.items()

        body["input"]["images"] = [at("no.png")]  # type: ignore[index]
        done = await program.follow(await program.create(CHANGE, body))
        assert (done["output"]["task_status"], len(drawing.asked)) == ("FAILED", 1)
        assert "no picture" in done["output"]["message"]
    nothing = {"model": "painter", "input": {"prompt": "x"}}
    assert (await program.post(f"/api/v1/services/{CHANGE}", nothing, **ASYNC)).status_code == 400


async def test_a_picture_by_address_is_fetched_and_what_is_none_is_refused(
    program: Program, worker: Loop, drawing: ImagesServer
) -> None:
    async with files_at({"made.png": PNG}) as at:
        drawing.answers = [
            web.json_response({"data": [{"url": at("made.png")}]}),
            web.json_response({"data": [{"b64_json": base64.b64encode(b"no picture at all").decode()}]}),
            web.json_response({"data": []}),
        ]
        body = {"model": "painter", "input": {"messages": [{"role": "user", "content": [{"text": "a cat"}]}]}}
        done = await program.follow(await program.create(BY_MESSAGE, body))
        content = done["output"]["choices"][0]["message"]["content"]
        assert content[0]["type"] == "image"
        assert await program.fetch(content[0]["image"]) == PNG
        for said in ("is no picture", "sent no picture"):
            done = await program.follow(await program.create(BY_MESSAGE, body))
            assert done["output"]["task_status"] == "FAILED"
            assert said in done["output"]["message"]
            assert done["output"]["task_metrics"] == {"TOTAL": 1, "SUCCEEDED": 0, "FAILED": 1}
            assert said in done["output"]["results"][0]["message"]


async def test_what_lies_on_the_named_server_is_fetched_and_nothing_else_inside(
    program: Program, worker: Loop, drawing: ImagesServer, settings: Settings
) -> None:
    settings.FETCH_ALLOWED_NETWORKS = []
    body = {"model": "painter", "input": {"prompt": "a cat"}}
    own = drawing.url.replace("/v1", "/made.png")
    async with files_at({"made.png": PNG}) as at:
        drawing.answers = [web.json_response({"data": [{"url": address}]}) for address in (own, at("made.png"))]
        done = await program.follow(await program.create(DRAW, body))
        assert await program.fetch(done["output"]["results"][0]["url"]) == PNG
        other = await program.follow(await program.create(DRAW, body))
    assert other["output"]["task_status"] == "FAILED"
    assert "public address" in other["output"]["message"]
    given = await program.post(
        f"/api/v1/services/{DRAW}", {"model": "painter", "input": {"prompt": "x", "ref_img": own}}, **ASYNC
    )
    assert given.status_code == 400


async def test_a_service_elsewhere_is_followed_and_its_picture_copied(
    program: Program, worker: Loop, relayed: Service
) -> None:
    async with files_at({"made.png": PNG}) as at:
        relayed.output = {
            "task_status": "SUCCEEDED",
            "results": [{"url": at("made.png"), "actual_prompt": "a very fine cat"}],
        }
        relayed.usage = {"image_count": 1}
        body = {
            "model": "far-painter",
            "input": {"prompt": "a cat", "own_field": 1},
            "parameters": {"style": "<sketch>", "n": 1},
        }
        done = await program.follow(await program.create(DRAW, body))
    [result] = done["output"]["results"]
    assert await program.fetch(result["url"]) == PNG
    assert result["actual_prompt"] == "a very fine cat"
    assert done["usage"] == {"image_count": 1}
    assert relayed.created == [
        {
            "path": f"/api/v1/services/{DRAW}",
            "model": "far-painter-there",
            "input": {"prompt": "a cat", "own_field": 1},
            "parameters": {"style": "<sketch>", "n": 1},
        }
    ]


FAR_CAT = {"model": "far-painter", "input": {"prompt": "a cat"}}


async def test_a_task_that_waits_at_a_service_is_canceled_there_and_here(
    program: Program, worker: Loop, relayed: Service
) -> None:
    relayed.looks_needed, relayed.status = 10_000, "PENDING"
    task_id = await program.create(DRAW, FAR_CAT)
    async with asyncio.timeout(PATIENCE_S):
        await relayed.looked.wait()
    canceled = await program.post(f"/api/v1/tasks/{task_id}/cancel")
    assert (canceled.status_code, canceled.json().keys()) == (200, {"request_id"})
    assert relayed.canceled == ["there-1"]
    assert (await program.look(task_id))["output"]["task_status"] == "CANCELED"
    assert (await program.post(f"/api/v1/tasks/{task_id}/cancel")).status_code == 400


@pytest.mark.parametrize(("status", "is_canceling"), [("RUNNING", True), ("PENDING", False)])
async def test_a_task_that_has_begun_at_a_service_goes_on(
    program: Program, worker: Loop, relayed: Service, status: str, is_canceling: bool
) -> None:
    relayed.looks_needed, relayed.status, relayed.is_canceling = 10_000, status, is_canceling
    task_id = await program.create(DRAW, FAR_CAT)
    async with asyncio.timeout(PATIENCE_S):
        await relayed.looked.wait()
    refused = await program.post(f"/api/v1/tasks/{task_id}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (400, "UnsupportedOperation")
    assert relayed.canceled == []
    assert (await program.look(task_id))["output"]["task_status"] == "RUNNING"
    relayed.output, relayed.looks_needed = {"task_status": "FAILED"}, 0
    assert (await program.follow(task_id))["output"]["task_status"] == "FAILED"


async def test_a_task_that_takes_too_long_is_given_up_at_the_service(
    program: Program, worker: Loop, relayed: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapp.images.kinds.TextToImage.time_limit_s", GIVING_UP_S + 0.2)
    relayed.looks_needed = 10_000
    done = await program.follow(await program.create(DRAW, FAR_CAT))
    assert relayed.canceled == ["there-1"]
    assert done["output"]["task_status"] == "FAILED"
    assert "not done within" in done["output"]["message"]


async def test_a_film_is_made_by_a_service_elsewhere(program: Program, worker: Loop, relayed: Service) -> None:
    async with files_at({"made.mp4": MP4}) as at:
        relayed.output = {"task_status": "SUCCEEDED", "video_url": at("made.mp4"), "orig_prompt": "a cat runs"}
        relayed.usage = {"video_count": 1, "duration": 5, "SR": 720, "size": "1280*720", "ratio": "16:9", "more": {}}
        body = {"model": "far-filmer", "input": {"prompt": "oss:// runs"}, "parameters": {"duration": 5}}
        done = await program.follow(await program.create(FILM, body))
    assert done["output"].items() >= {"task_status": "SUCCEEDED", "orig_prompt": "a cat runs"}.items()
    assert await program.fetch(done["output"]["video_url"]) == MP4
    assert relayed.created[0]["input"]["prompt"] == "oss:// runs"
    assert done["usage"] == {"video_count": 1, "duration": 5, "SR": 720, "size": "1280*720", "ratio": "16:9"}


@pytest.mark.parametrize(
    "sources",
    [
        {"first_frame_url": "https://8.8.8.8/a.png", "last_frame_url": "https://8.8.8.8/b.png"},
        {"head_frame": "https://8.8.8.8/a.png", "tail_frame": "https://8.8.8.8/b.png"},
        {"reference_url": "https://8.8.8.8/a.mp4"},
        {"reference_urls": ["https://8.8.8.8/a.png", "https://8.8.8.8/b.png"]},
        {"reference_video_urls": ["https://8.8.8.8/a.mp4"]},
        {"media": [{"type": "first_frame", "url": "https://8.8.8.8/a.png"}]},
    ],
    ids=lambda sources: next(iter(sources)),
)
async def test_a_film_is_made_from_pictures_however_the_library_names_them(
    program: Program, worker: Loop, relayed: Service, sources: dict[str, Any]
) -> None:
    async with files_at({"made.mp4": MP4}) as at:
        relayed.output = {"task_status": "SUCCEEDED", "video_url": at("made.mp4")}
        body = {"model": "far-filmer", "input": {"prompt": None, "extend_prompt": True, **sources}}
        done = await program.follow(await program.create(FILM_FROM_PICTURES, body))
    assert await program.fetch(done["output"]["video_url"]) == MP4
    assert relayed.created[0]["path"] == f"/api/v1/services/{FILM_FROM_PICTURES}"
    assert relayed.created[0]["input"] == {"extend_prompt": True, **sources}


@pytest.mark.parametrize(
    "given",
    [
        {"prompt": None, "extend_prompt": True},
        {"first_frame_url": "http://10.0.0.1/a.png", "last_frame_url": "https://8.8.8.8/b.png"},
        {"prompt": "a cat", "media": [{"type": "first_frame", "url": "http://10.0.0.1/a.png"}]},
    ],
)
async def test_a_film_of_nothing_or_from_inside_is_refused(
    program: Program, relayed: Service, given: dict[str, Any]
) -> None:
    answer = await program.post(
        f"/api/v1/services/{FILM_FROM_PICTURES}", {"model": "far-filmer", "input": given}, **ASYNC
    )
    assert answer.status_code == 400
    assert not relayed.created


async def test_what_fails_there_fails_here_in_its_words(program: Program, worker: Loop, relayed: Service) -> None:
    relayed.output = {"task_status": "FAILED", "code": "DataInspectionFailed", "message": f"No cats. {KEY}"}
    done = await program.follow(await program.create(FILM, {"model": "far-filmer", "input": {"prompt": "a cat"}}))
    assert done["output"]["task_status"] == "FAILED"
    assert "No cats." in done["output"]["message"]
    assert KEY not in str(done)


async def test_a_task_elsewhere_is_created_once_however_often_its_worker_dies(
    program: Program, relayed: Service
) -> None:
    relayed.looks_needed = 10**6
    async with files_at({"made.png": PNG}) as at:
        task_id = await program.create(DRAW, {"model": "far-painter", "input": {"prompt": "a cat"}})
        line = TaskQueue()

        async def database(function: Callable[..., Any], *arguments: object) -> Any:
            return await sync_to_async(function)(*arguments)

        [lease] = await sync_to_async(line.claim)("doomed", 1)
        doomed = asyncio.create_task(line.work(lease, database))
        await asyncio.wait_for(relayed.looked.wait(), PATIENCE_S)
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
        await sync_to_async(line.release)(lease)

        relayed.output = {"task_status": "SUCCEEDED", "results": [{"url": at("made.png")}]}
        relayed.looks_needed = 0
        again = Loop([TaskQueue()])
        running = asyncio.create_task(again.run())
        done = await program.follow(task_id)
        again.stop()
        await running
    assert done["output"]["task_status"] == "SUCCEEDED"
    assert len(relayed.created) == 1
