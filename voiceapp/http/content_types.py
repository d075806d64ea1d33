"""Headers with parameters, such as Content-Type, read without letting the caller's words choose a codec.

Django looks up any codec that a request names: `charset=rot13` fails in the middle of a form, RFC 2231 parameters raise
three kinds of exceptions on nonsense, and Python remembers every name that it has looked up in vain. A form of one
megabyte named 41,102 of them: reading it held up the event loop for eight seconds and kept five megabytes for good.
Here a table says which charsets there are. Django has no hook for this, so `install` puts two functions in the place of
its own; its version is pinned exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from django.http import HttpRequest, multipartparser

CHARSETS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "us-ascii",
    "ascii": "us-ascii",
    "iso-8859-1": "iso-8859-1",
    "latin-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "windows-1252": "windows-1252",
    "cp1252": "windows-1252",
}
"""Charsets of request bodies by the names that clients write, in lower case."""
EXTENDED = {"utf-8": "utf-8", "iso-8859-1": "iso-8859-1"}
"""Charsets of extended parameters such as `filename*=UTF-8''na%C3%AFve.wav` (RFC 5987, 3.2.1)."""
SHOWN = 40
"""Characters of a caller's word that an error message repeats."""

_PARAMETER = re.compile(r'\s*;\s*([^\s;="]*)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^;]*))?', re.DOTALL)


def parse_header_parameters(line: str) -> tuple[str, dict[str, str]]:
    """The value of a header in lower case, and its parameters by their names in lower case.

    Raises:
        ValueError: if a parameter's charset is unknown, or the line is not of this form.
    """
    end = line.find(";")
    if end < 0:
        return line.strip().lower(), {}
    value = line[:end].strip().lower()
    parameters: dict[str, str] = {}
    while end < len(line):
        found = _PARAMETER.match(line, end)
        if found is None:
            if line[end:].strip():
                raise ValueError("A parameter of the header cannot be read.")
            break
        end = found.end()
        name, text = found[1].lower(), (found[2] or "").strip()
        if name.endswith("*"):
            parameters[name[:-1]] = _extended(text)
        elif name:
            parameters.setdefault(name, _unquoted(text))
    return value, parameters


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return text


def _extended(text: str) -> str:
    charset, _, rest = text.partition("'")
    _language, quote, encoded = rest.partition("'")
    if not quote or charset.lower() not in EXTENDED:
        raise ValueError(f"The charset {charset[:SHOWN]!r} of a parameter is not supported. Use UTF-8.")
    return unquote(encoded, encoding=EXTENDED[charset.lower()])


def set_content_type_params(request: HttpRequest, meta: Mapping[str, Any]) -> None:
    """Set `content_type`, `content_params` and `encoding` of a request, or `content_type_fault`, a sentence."""
    request.content_type, request.content_params = "", {}
    request.content_type_fault = None
    try:
        request.content_type, request.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
    except ValueError as error:
        request.content_type_fault = f"The Content-Type cannot be read: {error}"
        return
    charset = request.content_params.get("charset")
    if charset is None:
        return
    if charset.lower() not in CHARSETS:
        request.content_type_fault = (
            f"The charset {charset[:SHOWN]!r} of the Content-Type is not supported. Send the body in UTF-8."
        )
        return
    # Not `encoding`, which reads the query: one of too many fields must be refused where that is translated.
    request._encoding = CHARSETS[charset.lower()]


def install() -> None:
    """Have Django read the Content-Type of requests, and the headers of the parts of forms, by these functions."""
    HttpRequest._set_content_type_params = set_content_type_params
    multipartparser.parse_header_parameters = parse_header_parameters
