"""Text without the marks that nobody pronounces: Markdown, symbols, invisible characters."""

from __future__ import annotations

import re
import unicodedata

_UNSPOKEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Sk", "So")
"""Unicode categories."""


def _list_item(found: re.Match[str]) -> str:
    """A line of a list, or a heading, is a sentence of its own."""
    line = found[1].rstrip()
    return line if re.search(r"[.!?:;,]$", line) else f"{line}."


def _table_row(found: re.Match[str]) -> str:
    cells = [cell.strip() for cell in found[0].strip().strip("|").split("|")]
    words = [cell for cell in cells if cell.strip("-: ")]
    return f"{', '.join(words)}." if words else ""


# Nothing that a text may repeat is matched without a bound from each of its places: a request's whole text comes here.
_MARKDOWN = (
    (re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE), ""),
    (re.compile(r"!?\[([^\[\]]*)\]\((?:[^()]|\([^()]*\))*\)"), r"\1"),
    (re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE), _table_row),
    (re.compile(r"^[ \t]*(?:#{1,6}|[-*+•]|>)[ \t]+(.*)$", re.MULTILINE), _list_item),
    (re.compile(r"^[ \t]*[-*_]{3,}[ \t]*$", re.MULTILINE), ""),
    (re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|[`~|]|(?<!\w)_+|_+(?!\w)"), ""),
    (re.compile(r"(?<![\w)])\^|\^(?![\w(-])"), ""),
)


def plain_text(text: str) -> str:
    """`text` as it is read aloud; symbols such as emoji stay only where there is nothing else."""
    text = unicodedata.normalize("NFC", text)
    for pattern, replacement in _MARKDOWN:
        text = pattern.sub(replacement, text)
    kept = "".join(char for char in text if char in "\n\t°^" or unicodedata.category(char) not in _UNSPOKEN)
    if not re.search(r"\w", kept):
        return text.strip()
    return re.sub(r"[ \t]+", " ", kept).strip()
