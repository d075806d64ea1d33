"""Headers with parameters: what clients send is read, what is hostile is refused, and callers choose no codec."""

from __future__ import annotations

import encodings
from io import BytesIO
from typing import Any

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser
from django.test import AsyncClient
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Member
from voiceapp.http.content_types import parse_header_parameters

CODECS = (
    *("rot13", "rot_13", "hex", "base64", "base64_codec", "bz2", "quopri", "uu", "zlib", "zip"),
    *("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7", "utf-16", "utf-32"),
    *("mbcs", "oem", "nonsense", "x" * 3000, "../codec", '""', "utf-8,rot13", "u\\tf-8"),
)
"""What Python knows under such a name, and what it does not."""
EXTENDED = (
    *("x*=rot13''%41", "x*=nonsense''a", "x*=undefined''a", "x*=idna''a", "x*=''a", "x*=a", "x*", "x*1*"),
    *("x*;x*1*", "boundary*=rot13''b", "charset*=nonsense''utf-8", '"', '"a"=b', 'a="b"c'),
)
"""Parameters that cannot be read."""

PATHS = (
    "/api/v1/uploads",
    "/api/v1/uploads/direct",
    "/compatible-mode/v1/audio/transcriptions",
    "/compatible-mode/v1/chat/completions",
    "/api/v1/webrtc/realtime",
    "/api/v1/webrtc/inference",
    "/api/v1/tokens",
    "/api/v1/nowhere",
    "/login",
    "/admin/login/",
    "/nowhere",
)


@pytest.mark.parametrize(
    ("line", "value", "parameters"),
    [
        ("", "", {}),
        (" Application/JSON ", "application/json", {}),
        ("application/json;", "application/json", {}),
        ("application/json; charset=UTF-8", "application/json", {"charset": "UTF-8"}),
        ('application/json;;CHARSET = "utf-8" ; ', "application/json", {"charset": "utf-8"}),
        ("multipart/form-data; boundary===_x==", "multipart/form-data", {"boundary": "==_x=="}),
        ('multipart/form-data; boundary="a b;c"', "multipart/form-data", {"boundary": "a b;c"}),
        (
            'Content-Disposition: form-data; name="file"; filename="a\\"b\\\\c;d.wav"',
            "content-disposition: form-data",
            {"name": "file", "filename": 'a"b\\c;d.wav'},
        ),
        ('a; filename="C:\\dir\\x.wav"', "a", {"filename": "C:\\dir\\x.wav"}),
        ('a; filename="naïve.wav"', "a", {"filename": "naïve.wav"}),
        ("a; filename=x.wav; filename*=UTF-8'de'na%C3%AFve.wav", "a", {"filename": "naïve.wav"}),
        ("a; filename*=iso-8859-1''na%EFve.wav; filename=x.wav", "a", {"filename": "naïve.wav"}),
        ("a; filename*=utf-8''%FF.wav", "a", {"filename": "\ufffd.wav"}),
        ('a; name="unfinished', "a", {"name": '"unfinished'}),
        ("a; name", "a", {"name": ""}),
        (f"a; x*{'9' * 5000}*=utf-8''b", "a", {f"x*{'9' * 5000}": "b"}),
    ],
)
def test_it_reads_what_clients_write(line: str, value: str, parameters: dict[str, str]) -> None:
    assert parse_header_parameters(line) == (value, parameters)


@pytest.mark.parametrize("parameter", EXTENDED)
def test_it_refuses_what_cannot_be_read(parameter: str) -> None:
    with pytest.raises(ValueError, match="parameter"):
        parse_header_parameters(f"multipart/form-data; {parameter}")


@given(st.lists(st.sampled_from([*'; ="1%é\\\t,', "a*=", "''", "utf-8'x'", "%41"]), max_size=20).map("".join))
def test_it_raises_nothing_else(parameters: str) -> None:
    try:
        value, _ = parse_header_parameters(f"a/b;{parameters}")
    except ValueError:
        return
    assert value == "a/b"


async def post(path: str, content_type: str, body: bytes, who: Member) -> tuple[int, str]:
    client = AsyncClient(raise_request_exception=False)
    headers = {"Authorization": who.authorization}
    response = await client.generic("POST", f"{path}?a=%41", body, content_type=content_type, headers=headers)
    return response.status_code, response["Content-Type"].partition(";")[0]


def form(*headers: str) -> bytes:
    lines = ['Content-Disposition: form-data; name="file"; filename="a.txt"', *headers, "", "words", "--b--", ""]
    return "\r\n".join(["--b", *lines]).encode()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        *((path, "multipart/form-data; boundary=b") for path in PATHS),
        *((path, "application/x-www-form-urlencoded") for path in ("/login", "/api/v1/uploads/direct")),
        ("/compatible-mode/v1/chat/completions", "application/json"),
        ("/api/v1/webrtc/realtime", "application/sdp"),
    ],
)
async def test_a_charset_that_is_not_known_is_refused_everywhere(path: str, kind: str, alice: Member) -> None:
    expected = 400, "application/json" if path.startswith(("/api", "/compatible")) else "text/html"
    refused = [f"; charset={name}" for name in CODECS] + [f"; {parameter}" for parameter in EXTENDED]
    assert {parameter: await post(path, kind + parameter, form(), alice) for parameter in refused} == dict.fromkeys(
        refused, expected
    )


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", '"utf-8"', "us-ascii", "ISO-8859-1", "windows-1252"])
async def test_charsets_that_clients_use_are_accepted(charset: str, alice: Member) -> None:
    assert (await post("/api/v1/uploads", f"multipart/form-data; boundary=b; charset={charset}", form(), alice))[
        0
    ] == 200


@pytest.mark.parametrize("charset", ["", "; charset=utf-8"])
async def test_too_many_fields_in_the_address_are_refused(charset: str, alice: Member) -> None:
    client = AsyncClient(raise_request_exception=False)
    response = await client.generic(
        "POST",
        "/api/v1/uploads/direct?" + "a&" * 1001,
        form(),
        content_type=f"multipart/form-data; boundary=b{charset}",
    )
    assert response.status_code == 401  # the form is read, and its policy is none


@pytest.mark.parametrize(
    "header",
    [
        *(f"Content-Type: text/plain; charset={name}" for name in CODECS[:20]),
        *(f"Content-Type: text/plain; {parameter}"[:900] for parameter in EXTENDED),
        *(f"X-Other: a; {parameter}"[:900] for parameter in EXTENDED),
        *(f"Content-Transfer-Encoding: {name}" for name in CODECS if len(name) < 900),
        "Content-Length: -5",
    ],
)
async def test_no_header_of_a_part_makes_the_server_fail(header: str, alice: Member) -> None:
    status, _ = await post("/api/v1/uploads", "multipart/form-data; boundary=b", form(header), alice)
    assert status in (200, 400)


@pytest.mark.parametrize("parameter", EXTENDED)
async def test_a_part_whose_disposition_cannot_be_read_is_not_there(parameter: str, alice: Member) -> None:
    body = form().replace(b'"a.txt"', f'"a.txt"; {parameter}'[:900].encode())
    assert (await post("/api/v1/uploads", "multipart/form-data; boundary=b", body, alice))[0] == 400


@pytest.mark.parametrize(
    "name", ["\\0.txt", "a\x00b.txt", "..", "/", "a/../../b", " ", "\u202e.txt", "x" * 800, "=?x?"]
)
async def test_no_name_of_a_file_makes_the_server_fail(name: str, alice: Member) -> None:
    body = form().replace(b"a.txt", name.encode())
    assert (await post("/api/v1/uploads", "multipart/form-data; boundary=b", body, alice))[0] in (200, 400)


def test_names_of_codecs_are_not_remembered() -> None:
    headers = "\r\n".join(f"X: a; x*=codec-{number}''y" for number in range(30))
    body = f'--b\r\nContent-Disposition: form-data; name="a"\r\n{headers}\r\n\r\nv\r\n--b--\r\n'.encode()
    meta: dict[str, Any] = {"CONTENT_TYPE": "multipart/form-data; boundary=b", "CONTENT_LENGTH": len(body)}
    before = len(encodings._cache)
    fields, _ = MultiPartParser(meta, BytesIO(body), [MemoryFileUploadHandler()]).parse()
    assert fields["a"] == "v"
    assert len(encodings._cache) == before
