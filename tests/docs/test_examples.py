"""The examples: each is a program, and each language sends the same request."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.loop_thread import LoopThread
from tests.web import everywhere, listening
from voiceapp.api import openapi_document
from voiceapp.docs.examples import ExampleCall, curl, javascript, python
from voiceapp.docs.fields import Schemas
from voiceapp.docs.reference import call_of

OPERATIONS = [
    pytest.param(method, path, id=f"{method.upper()} {path}")
    for path, operations in openapi_document()["paths"].items()
    for method in operations
    if not path.startswith("/api/v1/agentsvc/")
]
NAMES = ("API_KEY", "TASK_ID", "RESPONSE_ID", "ENDPOINT_ID", "EVENT_ID", "TOKEN", "NAME", "CALL_ID")
VARIABLES = {name: f"{name.lower()}_1" for name in NAMES}


@dataclass(frozen=True)
class Asked:
    """A request as a server got it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: Any


class Recorder:
    """A server that keeps what it is asked, and answers with an empty object."""

    origin: str

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def answer(self, request: web.Request) -> web.Response:
        body: Any = None
        if request.content_type == "application/json" and request.can_read_body:
            body = await request.json()
        elif request.content_type == "multipart/form-data":
            form = await request.post()
            body = {name: value.filename if hasattr(value, "filename") else value for name, value in form.items()}
        elif request.can_read_body:
            body = await request.text()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.method, request.path, request.rel_url.raw_query_string, headers, body))
        return web.json_response({})


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    recorder, loop = Recorder(), LoopThread()
    server = listening(everywhere(recorder.answer))
    recorder.origin = loop.run(server.__aenter__())
    yield recorder
    loop.run(server.__aexit__(None, None, None))
    loop.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the examples run, with the files that they send."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("recording.wav").write_bytes(b"RIFF")
    tmp_path.joinpath("offer.sdp").write_text("v=0")
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def call(method: str, path: str, origin: str) -> ExampleCall:
    document = openapi_document()
    return call_of(Schemas(document), method, path, document["paths"][path][method], origin)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.usefixtures("folder")
def test_the_program_in_python_makes_the_call(method: str, path: str, recorder: Recorder) -> None:
    made = call(method, path, recorder.origin)
    exec(compile(python(made), path, "exec"), {})
    asked = recorder.asked[-1]
    address = made.address.removeprefix(recorder.origin)
    for name, value in VARIABLES.items():
        address = address.replace(f"{{{name.lower()}}}", value)
    assert (asked.method, asked.path, asked.query) == (method.upper(), *address.partition("?")[::2])
    assert asked.headers.get("authorization") == ("Bearer api_key_1" if made.needs_key else None)
    for name, value in made.headers.items():
        assert asked.headers[name.lower()] == value
    if made.is_form:
        assert asked.body == made.fields | made.files
    elif made.content_type == "application/json":
        assert asked.body == made.body
    elif made.content_type:
        assert (asked.headers["content-type"], asked.body) == (made.content_type, "v=0")


HOSTILE = ExampleCall(
    "post",
    "https://host/{task_id}?a=b",
    needs_key=True,
    content_type="application/json",
    body={"text": 'it\'s "quoted" $HOME `id` \\n ${x}\n', "list": [True, None, 1.5], "long": ["a" * 60, "b" * 60]},
)


def test_texts_of_any_kind_stay_what_they_are(folder: Path) -> None:
    written = curl(HOSTILE).replace("curl", "printf '%s\\n'", 1)
    shown = subprocess.run(["sh", "-c", written], capture_output=True, text=True, check=True).stdout
    assert json.dumps(HOSTILE.body, indent=2) in shown
    text = python(HOSTILE)
    body = text[text.index("json=") + 5 : text.index(",\n    timeout=")]
    assert eval(body) == HOSTILE.body
    assert f"JSON.stringify({json.dumps(HOSTILE.body, indent=2)}".split("\n")[1] in javascript(HOSTILE)


def test_a_variable_that_is_not_set_stops_the_command(folder: Path) -> None:
    written = curl(HOSTILE).replace("curl", "echo called", 1)
    environment = {name: value for name, value in os.environ.items() if name != "TASK_ID"}
    for unset in (environment, environment | {"TASK_ID": ""}):
        done = subprocess.run(["sh", "-c", written], capture_output=True, text=True, env=unset, check=False)
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert "TASK_ID" in done.stderr


def test_a_variable_that_is_not_set_stops_the_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASK_ID")
    with pytest.raises(KeyError, match="TASK_ID"):
        exec(compile(python(HOSTILE), "example", "exec"), {})
    assert 'if (!API_KEY || !TASK_ID) throw new Error("Set API_KEY and TASK_ID first.");' in javascript(HOSTILE)
