"""A language model fetched from an address: once, resumed, checked, and nothing broken left behind."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from pytest_django.fixtures import Settings

from tests.certificates import self_signed
from voiceapp.catalogue.defaults import chat_model_file
from voiceapp.engines.models.download import fetch_model
from voiceapp.engines.models.fetching import FetchError, locked

MODEL = b"GGUF" + bytes(range(256)) * 4000
SHA256 = hashlib.sha256(MODEL).hexdigest()
LOOPBACK = [ip_network("127.0.0.0/8")]


class Server(http.server.ThreadingHTTPServer):
    """Serves one file at any path, by ranges; it breaks off after `gives` bytes of a response."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = MODEL
        self.gives = 10**9
        self.status = 200
        self.leads_to = ""
        self.tree: list[dict[str, Any]] = []
        """What the hub says of a repository."""
        self.etag = ""
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/models/tiny.gguf"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.server.leads_to not in ("", self.path):
            self.send_response(302)
            self.send_header("Location", self.server.leads_to)
            self.end_headers()
            return
        if self.path.startswith("/api/models/"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(self.server.tree).encode())
            return
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        if self.headers.get("If-Range", self.server.etag) != self.server.etag:
            wanted = None
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        status = self.server.status if self.server.status != 200 or not wanted else 206
        body = self.server.content[begin:]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        self.end_headers()
        self.wfile.write(body[: self.server.gives])

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "models" / "tiny.gguf"


def fetch(server: Server, to: Path, sha256: str = SHA256) -> list[str]:
    lines: list[str] = []
    fetch_model(server.url, to, sha256=sha256, report=lines.append, allowed_networks=LOOPBACK)
    return lines


def names(to: Path) -> list[str]:
    return sorted(file.name for file in to.parent.iterdir() if file.suffix != ".lock")


def test_it_is_fetched_once(server: Server, to: Path) -> None:
    fetch(server, to)
    assert to.read_bytes() == MODEL
    assert names(to) == ["tiny.gguf"]
    assert fetch(server, to) == ["Language model tiny.gguf: present."]
    assert len(server.ranges) == 1


def test_it_goes_on_where_it_broke_off(server: Server, to: Path) -> None:
    server.gives = 300_000
    with pytest.raises(FetchError, match="could not be fetched"):
        fetch(server, to)
    assert not to.exists()
    server.gives = 10**9
    fetch(server, to)
    assert to.read_bytes() == MODEL
    assert server.ranges == [None, "bytes=300000-"]


def test_a_file_that_has_changed_comes_anew(server: Server, to: Path) -> None:
    server.gives, server.etag = 300_000, '"first"'
    for _ in range(2):
        with pytest.raises(FetchError):
            fetch(server, to, "")
    server.gives, server.etag, server.content = 10**9, '"second"', MODEL[:4] + MODEL[::-1]
    fetch(server, to, "")
    assert to.read_bytes() == server.content
    assert names(to) == ["tiny.gguf"]
    assert server.ranges == [None, "bytes=300000-", "bytes=600000-"], "one that has not changed goes on"


def test_two_fetches_of_one_file_fetch_it_once(server: Server, to: Path) -> None:
    to.parent.mkdir(parents=True)
    waits, said = threading.Event(), [""]

    def report(line: str) -> None:
        said.append(line)
        waits.set()

    waiting = threading.Thread(
        target=fetch_model,
        args=(server.url, to),
        kwargs={"sha256": "", "report": report, "allowed_networks": LOOPBACK},
    )
    with locked(to.with_name("tiny.gguf.lock"), print):
        waiting.start()
        assert waits.wait(10)
        assert server.ranges == []
        to.write_bytes(MODEL)  # the other brought it
    waiting.join()
    assert said[1:] == ["Another fetch is running; waiting for it.", "Language model tiny.gguf: present."]
    assert server.ranges == []


@pytest.mark.parametrize("last", ["a.gguf", "..", "", "a" * 400, "é%2f\0.gguf", "[x/y.gguf"])
def test_each_address_has_a_file_of_its_own(tmp_path: Path, last: str) -> None:
    files = {chat_model_file(f"https://{host}.example/{last}", tmp_path) for host in ("one", "two")}
    assert len(files) == 2
    for file in files:
        assert file.parent.parent == tmp_path / "chat"
        file.parent.mkdir(parents=True)
        file.write_bytes(MODEL)


def test_a_checksum_is_told_where_none_was_set(server: Server, to: Path) -> None:
    assert fetch(server, to, "")[-1].startswith(f"Its checksum was not compared. Set CHAT_MODEL_SHA256={SHA256} ")


FETCH = """
import sys
from ipaddress import ip_network
from pathlib import Path
from voiceapp.engines.models.download import fetch_model
fetch_model(sys.argv[1], Path(sys.argv[2]), sha256="", report=print, allowed_networks=[ip_network("127.0.0.0/8")])
"""


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_it_does_not_follow_from_https_to_http(server: Server, to: Path, tmp_path: Path, scheme: str) -> None:
    """In a process of its own, which trusts the certificate."""
    with Server() as secure:
        secure.socket = self_signed(tmp_path).wrap_socket(secure.socket, server_side=True)
        secure.leads_to = server.url if scheme == "http" else "/other.gguf"
        threading.Thread(target=secure.serve_forever, daemon=True).start()
        done = subprocess.run(
            [sys.executable, "-c", FETCH, secure.url.replace("http:", "https:"), str(to)],
            cwd=settings.BASE_DIR,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "SSL_CERT_FILE": str(tmp_path / "certificate.pem"),
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        secure.shutdown()
    assert ("redirects from https to http" in done.stderr) is (scheme == "http")
    assert (server.ranges, to.exists()) == ([], scheme == "https")


def test_a_file_with_another_checksum_is_not_kept(server: Server, to: Path) -> None:
    with pytest.raises(FetchError, match="CHAT_MODEL_SHA256"):
        fetch(server, to, "0" * 64)
    assert names(to) == []


def test_a_file_that_is_no_model_is_not_kept(server: Server, to: Path) -> None:
    server.content = b"<html>Please sign in</html>"
    with pytest.raises(FetchError, match="no GGUF model"):
        fetch(server, to, "")
    assert names(to) == []


def test_a_server_without_the_file_is_named(server: Server, to: Path) -> None:
    server.status = 404
    with pytest.raises(FetchError, match="404"):
        fetch(server, to)
    assert not to.exists()


def test_an_address_that_is_gone_is_named(server: Server, to: Path) -> None:
    server.server_close()
    with pytest.raises(FetchError, match="could not be reached"):
        fetch_model(server.url, to, sha256="", report=print, allowed_networks=LOOPBACK)


def test_a_disk_that_fills_is_named(server: Server, to: Path) -> None:
    to.parent.mkdir(parents=True)
    to.with_name("tiny.gguf.part").symlink_to("/dev/full")
    with pytest.raises(FetchError, match="is full"):
        fetch(server, to)
    assert not to.exists()


def test_private_addresses_are_not_asked(server: Server, to: Path) -> None:
    with pytest.raises(FetchError, match="does not lead to a public address"):
        fetch_model(server.url, to, sha256="", report=print)
    assert server.ranges == []


def on_hub(name: str, sha256: str = SHA256) -> dict[str, Any]:
    return {"type": "file", "path": name, "size": 9, "lfs": {"oid": sha256, "size": len(MODEL)}}


def fetch_from_hub(server: Server, settings: Settings, to: Path, name: str = "hf:owner/tiny-GGUF:Q4_K_M") -> list[str]:
    settings.HF_ENDPOINT = server.url.partition("/models")[0]
    lines: list[str] = []
    fetch_model(name, to, sha256="", report=lines.append, allowed_networks=LOOPBACK)
    return lines


def test_a_model_of_a_hub_comes_by_its_name_and_goes_on_where_it_stopped(
    server: Server, settings: Settings, to: Path
) -> None:
    server.tree = [
        {"type": "file", "path": "README.md"},
        on_hub("tiny-Q8_0.gguf", "0" * 64),
        on_hub("tiny-q4_k_m.gguf"),
    ]
    server.gives = 300_000
    with pytest.raises(FetchError):
        fetch_from_hub(server, settings, to)
    server.gives = 10**9
    lines = fetch_from_hub(server, settings, to, "hf:owner/tiny-GGUF")
    assert to.read_bytes() == MODEL
    assert server.ranges == [None, "bytes=300000-"]
    assert any("resolve/main/tiny-q4_k_m.gguf" in line for line in lines)


@pytest.mark.parametrize(
    ("files", "name", "said"),
    [
        ([on_hub("tiny-Q4_K_M.gguf", "0" * 64)], "hf:owner/tiny", "another checksum"),
        ([on_hub("tiny-Q8_0.gguf")], "hf:owner/tiny", "has no Q4_K_M. It has tiny-Q8_0.gguf"),
        ([on_hub("a-Q4_K_M-00001-of-00002.gguf")], "hf:owner/tiny", "divided into several files"),
        ([{"type": "file", "path": "tiny-Q4_K_M.gguf", "lfs": 3}], "hf:owner/tiny", "cannot be read"),
        ([on_hub("tiny-Q4_K_M.gguf") | {"lfs": {"oid": "", "size": float("inf")}}], "hf:owner/tiny", "cannot be read"),
        ([], "hf:../../etc", "is not a name such as"),
    ],
)
def test_what_a_hub_does_not_have_is_said(
    server: Server, settings: Settings, to: Path, files: list[Any], name: str, said: str
) -> None:
    server.tree = files
    with pytest.raises(FetchError, match=said):
        fetch_from_hub(server, settings, to, name)
    assert not to.exists()
