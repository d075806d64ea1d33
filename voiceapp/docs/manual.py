"""The manual: one page for each file of docs/manual, in the order of the numbers that their names begin with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString

from .writing import to_html

_FILE_NAME = re.compile(r"(?:\d+-)?(?P<slug>[a-z0-9-]+)\.md")


@dataclass(frozen=True, slots=True)
class ManualPage:
    slug: str
    """Its name in the address: `connecting-a-program`."""
    title: str
    summary: str
    """Its first paragraph's first sentence."""
    html: SafeString
    """Everything below the title."""
    text: str
    """The whole page as Markdown."""


@cache
def pages(folder: Path = settings.BASE_DIR / "docs" / "manual") -> tuple[ManualPage, ...]:
    """All pages in reading order; read once in a process."""
    found = []
    for path in sorted(folder.glob("*.md")):
        if name := _FILE_NAME.fullmatch(path.name):
            found.append(_page(name["slug"], path.read_text(encoding="utf-8")))
    return tuple(found)


def page(slug: str) -> ManualPage | None:
    """The page of this name; None when there is none."""
    return next((page for page in pages() if page.slug == slug), None)


def _page(slug: str, text: str) -> ManualPage:
    heading, _, rest = text.strip().partition("\n")
    first = next((block for block in rest.strip().split("\n\n") if block[:1].isalnum()), "")
    return ManualPage(
        slug=slug,
        title=heading.lstrip("# ").strip(),
        summary=re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0],
        html=to_html(rest),
        text=text,
    )
