"""Agents as TOML files, one each, named `NAME.toml`: for people who keep them in git."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from voiceapp.agents import documents
from voiceapp.agents.documents import kept, texts_of
from voiceapp.agents.models import COMPOSED, Agent, Composition

MAX_BYTES = 200_000
"""Size of one file."""
MAX_NUMBER = 2**53
"""Numbers are smaller; infinity and what is not a number are not."""

FIELDS = tuple(name for name in COMPOSED if name != "documents")
"""Fields of a file. Documents are files themselves, in a folder beside it that has the name of the agent."""
FILE = "file"
"""Stands in the place of the person who published a version."""


class AgentFileError(Exception):
    """A file cannot be applied; the message names it, the line and what to do."""


def written(composed: Composition) -> str:
    """Return an agent as the text of a file; what has its usual value is left out."""
    usual = Agent()
    fields = [
        f"{name} = {_value(value)}\n"
        for name in FIELDS
        if (value := getattr(composed, name)) is not None and value != getattr(usual, name)
    ]
    return "".join(fields)


def export(folder: Path) -> Iterator[Path]:
    """Write the published agents into a folder; yields each file."""
    folder.mkdir(parents=True, exist_ok=True)
    for agent in Agent.objects.all():
        if (current := agent.current) is not None:
            path = folder / f"{agent.name}.toml"
            path.write_text(written(current), encoding="utf-8")
            for name, text in texts_of(current.documents).items():
                path.with_suffix("").mkdir(exist_ok=True)
                (path.with_suffix("") / name).write_text(text, encoding="utf-8")
            yield path


def apply(folder: Path, report: Callable[[str], object]) -> list[AgentFileError]:
    """Publish the agents of a folder's files. A file with a mistake changes nothing of its agent; returns those."""
    wrong: list[AgentFileError] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            try:
                report(_apply(path))
            except IntegrityError:  # another process at the same file was faster
                report(_apply(path))
        except AgentFileError as error:
            wrong.append(error)
    return wrong


def hold(folder: Path, report: Callable[[str], object]) -> list[AgentFileError]:
    """`apply`, and remove agents that were published from files which are gone. Without the folder all stays."""
    if not folder.is_dir():
        return [AgentFileError(f"AGENTS_DIR: the folder {folder} does not exist. The agents stay as they were.")]
    wrong = apply(folder, report)
    for agent in Agent.objects.exclude(name__in=[path.stem for path in folder.glob("*.toml")]):
        if agent.current is not None and agent.current.published_by == FILE:
            agent.delete()
            report(f"{agent}: removed, as its file was")
    return wrong


def _apply(path: Path) -> str:
    text = _text(path)
    given = _read(path, text)
    with transaction.atomic():
        return _published(path, text, given)


def _published(path: Path, text: str, given: dict[str, Any]) -> str:
    agent = Agent.objects.filter(name=path.stem).first() or Agent(name=path.stem)
    before = agent.current if agent.pk else None
    for name in FIELDS:
        setattr(agent, name, given.get(name, Agent._meta.get_field(name).get_default()))
    try:
        agent.documents = kept(_documents(path.with_suffix("")))
    except ValidationError as error:
        raise AgentFileError(f"{path.stem}/: {error.message}") from error
    try:
        agent.full_clean(validate_unique=False)
    except ValidationError as error:
        raise _mistake(path, text, error) from error
    agent.save()
    version = agent.publish(FILE)
    return f"{version}: {'unchanged' if before == version else 'published'}"


def _documents(folder: Path) -> dict[str, bytes]:
    """The documents beside an agent's file; of one that is too large, no more than shows that."""
    found: dict[str, bytes] = {}
    for path in islice((path for path in sorted(folder.glob("[!.]*")) if path.is_file()), documents.MAX_FILES + 1):
        with path.open("rb") as file:
            found[path.name] = file.read(documents.MAX_BYTES + 1)
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise AgentFileError(f"{path.name}: larger than {MAX_BYTES} bytes. Shorten it.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentFileError(f"{path.name}: cannot be read as UTF-8 text ({error}).") from error


def _read(path: Path, text: str) -> dict[str, Any]:
    """The fields of a file, each of the type of its column."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AgentFileError(f"{path.name}: {error}.") from error
    for name, value in given.items():
        if name not in FIELDS:
            raise _at(path, text, name, f"{name} is not known. Write of {', '.join(FIELDS)}.")
        usual = Agent._meta.get_field(name).get_default()
        wanted = str if isinstance(usual, str) else bool if isinstance(usual, bool) else float
        fits = type(value) is wanted or (wanted, type(value)) == (float, int)
        if not fits or (wanted is float and not abs(value) < MAX_NUMBER) or (wanted is str and "\0" in value):
            kind = {bool: "true or false", str: "a text in quotes"}.get(wanted, "a number")
            raise _at(path, text, name, f"{name} must be {kind}.")
    return given


def _mistake(path: Path, text: str, error: ValidationError) -> AgentFileError:
    name, messages = next(iter(error.message_dict.items()))
    return _at(path, text, name, " ".join(messages))


def _at(path: Path, text: str, name: str, message: str) -> AgentFileError:
    lines = text.splitlines()
    place = next((at for at, line in enumerate(lines, 1) if re.match(rf'\s*"?{re.escape(name)}"?\s*=', line)), None)
    return AgentFileError(f"{path.name}{f', line {place}' if place else ''}: {message}")


def _value(value: Any) -> str:
    """A value in TOML; a text of several lines keeps them."""
    if not isinstance(value, str):
        return json.dumps(value)
    quoted = json.dumps(value, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")
    lines = re.sub(r"(?<!\\)((?:\\\\)*)\\n", r"\1\n", quoted)
    return f'"""\n{lines}"""' if "\n" in value else f'"{quoted}"'
