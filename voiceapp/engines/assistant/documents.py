"""The documents that the embedded assistant replies from: Markdown and text files, cut into passages and sentences.

Only what can be said aloud is kept: no code blocks, tables, images or addresses behind links. No model is used here.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from voiceapp.engines.sentences import SentenceSplitter

log = logging.getLogger(__name__)

SUFFIXES = (".md", ".txt")
MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_FILES = 2_000
MAX_PASSAGES = 5_000
"""About a thousand pages: 40 MB of vectors, and a minute and a half to embed them for the first time."""
MAX_PASSAGE_CHARS = 700
"""About 150 tokens: a passage is one idea, and fits the embedding model's window."""
_PAGE = re.compile(r"/(?:\d+-)?([a-z0-9-]+)\.md\)")
_TARGET = r"\((?:[^()]|\([^()]*\))*\)"
"""The address of a link, with one pair of brackets inside at most."""


@dataclass(frozen=True, slots=True)
class Folder:
    path: Path
    is_manual: bool = False
    """This product's own manual, as against documents that an operator added."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, or the part of a long one that is read at once."""

    title: str
    """Title of the document: its first heading, or the file's name."""
    heading: str
    """The nearest heading above; empty directly below the title."""
    sentences: tuple[str, ...]
    is_manual: bool = False
    page: str = ""
    """Page of the manual, as its address names it."""

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


Stamp = tuple[tuple[str, int, int], ...]
"""Path, time of change in ns, and size of each document."""


def stamp(folders: Sequence[Folder]) -> Stamp:
    """Return the state of the files that `load` would read; differs when a document was added, changed or removed."""
    return tuple((str(path), status.st_mtime_ns, status.st_size) for _, path, status in _files(folders))


def load(folders: Sequence[Folder]) -> list[Passage]:
    """All passages of all documents, in the order of their paths. A file that cannot be read is logged and left out."""
    passages: list[Passage] = []
    for folder, path, status in _files(folders):
        if status.st_size > MAX_FILE_BYTES:
            log.warning("Document %s is larger than %d bytes and is left out.", path.name, MAX_FILE_BYTES)
            continue
        try:
            text = path.read_bytes().decode("utf-8-sig", "replace")
        except OSError as error:
            log.warning("Document %s cannot be read: %s", path.name, error.strerror)
            continue
        passages += parse(text, name=path.stem, is_manual=folder.is_manual)
        if len(passages) > MAX_PASSAGES:
            log.warning("The documents have more than %d passages; the rest is left out.", MAX_PASSAGES)
            return passages[:MAX_PASSAGES]
    return passages


def _files(folders: Sequence[Folder]) -> Iterator[tuple[Folder, Path, os.stat_result]]:
    count = 0
    for folder in folders:
        for parent, below, names in os.walk(folder.path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(names):
                path = Path(parent, name)
                if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                    continue
                try:
                    status = path.stat()
                except OSError:
                    continue  # removed meanwhile, or a link to nothing
                count += 1
                if count > MAX_FILES:
                    return
                yield folder, path, status


def parse(text: str, *, name: str, is_manual: bool = False) -> list[Passage]:
    """The passages of one document. `name` is its title when it has no heading."""
    title, heading = "", ""
    page = re.sub(r"^\d+-", "", name) if is_manual else ""
    passages = []
    for block in _blocks(text):
        match = re.fullmatch(r"(#{1,6})\s+(.*?)\s*#*", block)
        if match is None:
            passages += [
                Passage(title or _title_of(name), heading, sentences, is_manual, page) for sentences in _passages(block)
            ]
        elif is_manual and match[1] == "#":  # one part for each page, which its title leads to
            title, heading = _speakable(match[2]), ""
            page = linked[1] if (linked := _PAGE.search(match[2])) else page
        elif not title and not passages:
            title = _speakable(match[2])
        else:
            heading = _speakable(match[2])
    return passages


def _title_of(name: str) -> str:
    return re.sub(r"[-_\s]+", " ", re.sub(r"^\d+[-_ ]", "", name)).strip() or name


def _blocks(text: str) -> Iterator[str]:
    """Headings, paragraphs, and lists as one paragraph each; code, tables, comments and front matter are left out."""
    text = re.sub(r"\A---\r?\n.*?\r?\n---\r?\n", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    lines: list[str] = []
    fence = ""
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        if fence:
            fence = "" if stripped.startswith(fence) else fence
            continue
        if match := re.match(r"(```+|~~~+)", stripped):
            fence = match[1]
            continue
        is_heading = re.match(r"#{1,6}\s", stripped) is not None
        if not stripped or is_heading or stripped.startswith("|") or re.fullmatch(r"[-*_=]{3,}", stripped):
            if lines:
                yield "\n".join(lines)
                lines = []
            if is_heading:
                yield stripped
        else:
            lines.append(stripped)


def _passages(block: str) -> Iterator[tuple[str, ...]]:
    """The sentences of one paragraph, in runs that are not too long."""
    run: list[str] = []
    for sentence in _sentences(block):
        if run and sum(map(len, run)) + len(sentence) > MAX_PASSAGE_CHARS:
            yield tuple(run)
            run = []
        run.append(sentence)
    if run:
        yield tuple(run)


def _sentences(block: str) -> Iterator[str]:
    for part in _items(block.split("\n")):
        splitter = SentenceSplitter(first_clause_chars=0)
        for sentence in (*splitter.feed(_speakable(part)), *splitter.flush()):
            if any(letter.isalnum() for letter in sentence):
                yield _ended(sentence.strip())


def _items(lines: Iterable[str]) -> list[str]:
    """The items of a list, each with the lines that go on with it; of a paragraph, the whole."""
    parts: list[str] = []
    for line in lines:
        item = re.match(r"(?:[-*+]|\d{1,3}[.)])\s+(.*)", line)
        if item is not None:
            parts.append(item[1])
        elif parts:
            parts[-1] += f" {line.removeprefix('> ')}"
        else:
            parts.append(line.removeprefix("> "))
    return parts


def _speakable(text: str) -> str:
    """Without marks that are for the eye."""
    text = re.sub(rf"!\[[^\[\]]*\]{_TARGET}", "", text)
    text = re.sub(rf"\[([^\[\]]+)\]{_TARGET}", r"\1", text)
    text = re.sub(r"<(https?://[^<>]+)>", r"\1", text)
    text = re.sub(r"`+([^`]*)`+", r"\1", text)
    text = re.sub(r"(\*\*|__)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])[*_](?=\S)(.{1,300}?)(?<=\S)[*_](?![\w*])", r"\1", text)
    return " ".join(text.split())


def _ended(sentence: str) -> str:
    return sentence if sentence[-1] in ".!?…:;。！？\"'”’)" else f"{sentence}."
