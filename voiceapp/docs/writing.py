"""Markdown into HTML that may stand on a page of ours: no HTML of its author's, headings that can be linked."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .colouring import coloured

_OPTIONS = {"html": False, "typographer": False, "highlight": lambda code, language, _: coloured(code, language)}
_PARSER = MarkdownIt("commonmark", _OPTIONS).enable(["table", "strikethrough"])


WIDE = '<div class="wide" tabindex="0" role="group" aria-label="Table">'
"""Wrapper of a table: scrolls by itself on a narrow screen and takes the keyboard's focus."""


def to_html(text: str, *, has_links: bool = True) -> SafeString:
    """Rendered Markdown. HTML in the text is shown as text, and addresses are only those that browsers may follow.

    With `has_links`, every heading is a place and has a link to itself.
    """
    tokens = _PARSER.parse(text)
    taken: set[str] = set()
    for opening, content in itertools.pairwise(tokens):
        if has_links and opening.type == "heading_open":
            opening.attrSet("id", unique(anchor(content.content), taken))
            _link(content, str(opening.attrs["id"]))
    return mark_safe(_PARSER.renderer.render(_reachable(tokens), _PARSER.options, {}))  # noqa: S308 (escaped above)


def _link(heading: Token, place: str) -> None:
    """Make the words of a heading a link to it, unless they hold one already."""
    words = heading.children or []
    if not any(word.type == "link_open" for word in words):
        opening = Token("link_open", "a", 1, attrs={"class": "place", "href": f"#{place}"})
        heading.children = [opening, *words, Token("link_close", "a", -1)]


def to_inline_html(text: str) -> SafeString:
    """One line of Markdown, without a paragraph around it."""
    return mark_safe(_PARSER.renderInline(text))  # noqa: S308 (escaped above)


def anchor(words: str) -> str:
    """`What happens when you speak?` → `what-happens-when-you-speak`."""
    return re.sub(r"[\W_]+", "-", words.lower()).strip("-") or "section"


def unique(name: str, taken: set[str]) -> str:
    """The name itself or, if it is taken, with a number behind it; takes it."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    taken.add(candidate)
    return candidate


def _reachable(tokens: Sequence[Token]) -> list[Token]:
    """The same, with what may be too wide for a phone made to scroll."""
    reachable: list[Token] = []
    for token in tokens:
        if token.type in ("fence", "code_block"):
            token.attrSet("tabindex", "0")
        if token.type == "table_open":
            reachable.append(Token("html_block", "", 0, content=WIDE))
        reachable.append(token)
        if token.type == "table_close":
            reachable.append(Token("html_block", "", 0, content="</div>\n"))
    return reachable
