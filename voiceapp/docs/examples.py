"""One call of an operation as a program would make it: in a shell, in Python and in JavaScript.

What only the caller knows is left to environment variables: `API_KEY`, `TASK_ID`, … One that is not set stops the
example, because an address without it may be another operation's.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

FILE = "recording.wav"
"""File that examples upload."""
OFFER = "offer.sdp"
"""File that examples send when the body is neither JSON nor a form."""
TIMEOUT_S = 120

_PLACE = re.compile(r"\{(\w+)\}")
_CURL = {"get": "curl", "head": "curl --head"}
"""Command by method; with `-X HEAD`, curl would wait for a body that never comes."""


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """An example request, and the kind of its response."""

    method: str
    """In small letters."""
    address: str
    """With the host and the query; `{task_id}` stands for the variable `TASK_ID`."""
    needs_key: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    """Besides the key and the type of the body."""
    content_type: str = ""
    """Content type of the request's body; empty without one."""
    body: Any = None
    """A value for JSON, fields for a form; of a file, its name behind an `@`."""
    saved_as: str = ""
    """The file that takes a response which a terminal cannot show; `*` for one that the server names."""
    is_json: bool = True
    """False for a response that is a file or a stream."""

    @property
    def variables(self) -> list[str]:
        """Environment variables that the example needs, the key first."""
        return (["API_KEY"] if self.needs_key else []) + [name.upper() for name in _PLACE.findall(self.address)]

    @property
    def is_form(self) -> bool:
        return self.content_type.startswith("multipart/")

    @property
    def files(self) -> dict[str, str]:
        """File names of a form, by field."""
        return {name: value[1:] for name, value in self.body.items() if str(value).startswith("@")}

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a form that are not files."""
        return {name: value for name, value in self.body.items() if name not in self.files}


def curl(call: ExampleCall) -> str:
    """A command for a POSIX shell, one option to a line; `${NAME:?}` stops it when the variable is not set."""
    address = _PLACE.sub(lambda name: f"${{{name[1].upper()}:?}}", call.address)
    lines = [f'{_CURL.get(call.method, f"curl -X {call.method.upper()}")} "{address}"']
    if call.needs_key:
        lines.append('-H "Authorization: Bearer ${API_KEY:?}"')
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in call.headers.items()]
    if call.is_form:
        lines += [f"-F {shlex.quote(f'{name}={value}')}" for name, value in call.body.items()]
    elif call.content_type:
        lines.append(f"-H {shlex.quote(f'Content-Type: {call.content_type}')}")
        if call.content_type == "application/json":
            lines.append(f"-d {shlex.quote(json.dumps(call.body, ensure_ascii=False, indent=2))}")
        else:
            lines.append(f"--data-binary @{OFFER}")
    if call.saved_as:
        lines.append("--remote-name" if call.saved_as == "*" else f"--output {call.saved_as}")
    return " \\\n  ".join(lines)


def python(call: ExampleCall) -> str:
    """A program for Python with httpx, which the openai library brings."""
    address = _PLACE.sub(lambda name: f"{{os.environ['{name[1].upper()}']}}", call.address)
    options = [f"{'f' if address != call.address else ''}{_quoted(address)}"]
    headers = {name: _quoted(value) for name, value in call.headers.items()}
    if call.needs_key:
        headers = {"Authorization": "f\"Bearer {os.environ['API_KEY']}\"", **headers}
    if call.content_type and not call.is_form and call.content_type != "application/json":
        headers["Content-Type"] = _quoted(call.content_type)
        options.append(f'content=Path("{OFFER}").read_bytes()')
    if headers:
        options.insert(1, f"headers={{{', '.join(f'{_quoted(name)}: {value}' for name, value in headers.items())}}}")
    if call.is_form:
        files = ", ".join(f'{_quoted(name)}: open({_quoted(file)}, "rb")' for name, file in call.files.items())
        options += [f"data={_python(call.fields)}"] if call.fields else []
        options.append(f"files={{{files}}}")
    elif call.content_type == "application/json":
        options.append(f"json={_python(call.body)}")
    options.append(f"timeout={TIMEOUT_S}")
    arguments = "".join(f"    {_indented(option)},\n" for option in options)
    text = f"response = httpx.{call.method}(\n{arguments})\nresponse.raise_for_status()\n{_python_end(call)}\n"
    needs_path = "Path(" in text
    imports = ["import os"] * bool(call.variables) + ["from pathlib import Path"] * needs_path
    return "\n".join([*imports, "\nimport httpx\n" if imports else "import httpx\n", text]).rstrip()


def javascript(call: ExampleCall) -> str:
    """A module for Node, which has `fetch`."""
    address = _PLACE.sub(lambda name: f"${{{name[1].upper()}}}", call.address)
    lines = []
    if names := call.variables:
        unset = " || ".join(f"!{name}" for name in names)
        lines += [
            f"const {{ {', '.join(names)} }} = process.env;",
            f'if ({unset}) throw new Error("Set {" and ".join(names)} first.");',
            "",
        ]
    lines += _javascript_form(call) if call.is_form else []
    headers = {_key(name): json.dumps(value) for name, value in call.headers.items()}
    if call.needs_key:
        headers = {"Authorization": "`Bearer ${API_KEY}`", **headers}
    if call.content_type and not call.is_form:
        headers[_key("Content-Type")] = json.dumps(call.content_type)
    options = [] if call.method == "get" else [f'method: "{call.method.upper()}"']
    if headers:
        options.append(f"headers: {{ {', '.join(f'{name}: {value}' for name, value in headers.items())} }}")
    options += _javascript_body(call)
    quote = "`" if address != call.address else '"'
    given = "".join(f"  {_indented(option, 2)},\n" for option in options)
    given = f", {{\n{given}}}" if given else ""
    lines += [f"const response = await fetch({quote}{address}{quote}{given});"]
    lines += ["if (!response.ok) throw new Error(await response.text());", *_javascript_end(call)]
    return "\n".join(lines)


LANGUAGES: Mapping[str, Callable[[ExampleCall], str]] = {"curl": curl, "Python": python, "JavaScript": javascript}
"""By the name that people know."""


def _python_end(call: ExampleCall) -> str:
    if call.method == "head":
        return "print(response.headers)"
    if call.saved_as:
        file = 'response.url.path.rpartition("/")[2]' if call.saved_as == "*" else _quoted(call.saved_as)
        return f"Path({file}).write_bytes(response.content)"
    return "print(response.json())" if call.is_json else "print(response.text)"


def _javascript_form(call: ExampleCall) -> list[str]:
    lines = ['const { openAsBlob } = await import("node:fs");', "const form = new FormData();"]
    for name, value in call.fields.items():
        lines.append(f"form.append({json.dumps(name)}, {json.dumps(value)});")
    # Behind a file, servers of files read no more fields.
    for name, file in call.files.items():
        lines.append(f"form.append({json.dumps(name)}, await openAsBlob({json.dumps(file)}), {json.dumps(file)});")
    return [*lines, ""]


def _javascript_body(call: ExampleCall) -> list[str]:
    if call.is_form:
        return ["body: form"]
    if call.content_type == "application/json":
        return [f"body: JSON.stringify({json.dumps(call.body, ensure_ascii=False, indent=2)})"]
    if call.content_type:
        return [f'body: await (await import("node:fs/promises")).readFile("{OFFER}")']
    return []


def _javascript_end(call: ExampleCall) -> list[str]:
    if call.method == "head":
        return ["console.log(response.headers);"]
    if call.saved_as:
        file = 'new URL(response.url).pathname.split("/").pop()' if call.saved_as == "*" else json.dumps(call.saved_as)
        return [
            'const { writeFile } = await import("node:fs/promises");',
            f"await writeFile({file}, Buffer.from(await response.arrayBuffer()));",
        ]
    return [f"console.log(await response.{'json' if call.is_json else 'text'}());"]


def _key(name: str) -> str:
    """A key of an object in JavaScript."""
    return name if name.isidentifier() else json.dumps(name)


def _quoted(text: str) -> str:
    """A string of Python in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _python(value: Any) -> str:
    """A value of JSON as Python writes it, one entry to a line where it is long."""
    if isinstance(value, dict):
        return _python_group("{", [f"{_quoted(name)}: {_python(item)}" for name, item in value.items()], "}")
    if isinstance(value, list):
        return _python_group("[", list(map(_python, value)), "]")
    return _quoted(value) if isinstance(value, str) else repr(value)


def _python_group(opening: str, items: list[str], closing: str) -> str:
    line = f"{opening}{', '.join(items)}{closing}"
    if len(line) <= 72 and "\n" not in line:
        return line
    return f"{opening}\n" + "".join(f"    {_indented(item)},\n" for item in items) + closing


def _indented(text: str, by: int = 4) -> str:
    return text.replace("\n", "\n" + " " * by)
