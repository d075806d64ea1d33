"""The manual: the files of docs/manual, on three shelves by number, those of docs/deploy, and all settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils.safestring import SafeString

from voiceapp.settings import reference

from .writing import to_html

_FILE_NAME = re.compile(r"(?:(?P<number>\d+)-)?(?P<slug>[a-z0-9-]+)\.md")
_LINK = re.compile(r"\]\((?:\.\./\w+/)?(?:\d+-)?([a-z0-9-]+)\.md(#[\w-]+)?\)")
"""A link from one page to another, as it works between files too."""
SHELVES = {
    0: ("Talking", "For people who use the page."),
    10: ("Connecting programs", "For developers of programs and pages."),
    20: ("Operating", "For people who run the server."),
}
"""Title and purpose of each shelf, by the smallest number of its pages."""


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
    shelf: str
    """Title of its shelf; pages without a number are for operators."""


@cache
def pages() -> tuple[ManualPage, ...]:
    """All pages in reading order; read once in a process."""
    docs = settings.BASE_DIR / "docs"
    return (*pages_in(docs / "manual"), *pages_in(docs / "deploy"), _page("settings", reference.page()))


def pages_in(folder: Path) -> list[ManualPage]:
    """The pages of a folder, in the order of their names."""
    named = [(_FILE_NAME.fullmatch(path.name), path) for path in sorted(folder.glob("*.md"))]
    return [
        _page(name["slug"], path.read_text(encoding="utf-8"), int(name["number"] or 99)) for name, path in named if name
    ]


def shelves() -> list[tuple[str, str, list[ManualPage]]]:
    """Title, purpose and pages of each shelf."""
    return [(title, purpose, [page for page in pages() if page.shelf == title]) for title, purpose in SHELVES.values()]


def page(slug: str) -> ManualPage | None:
    """The page of this name; None when there is none."""
    return next((page for page in pages() if page.slug == slug), None)


def _page(slug: str, text: str, number: int = 99) -> ManualPage:
    heading, _, rest = text.strip().partition("\n")
    first = next((block for block in rest.strip().split("\n\n") if block[:1].isalnum()), "")
    return ManualPage(
        slug=slug,
        title=heading.lstrip("# ").strip(),
        summary=re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0],
        html=to_html(_LINK.sub(rf"]({reverse('manual')}/\1\2)", rest)),
        text=text,
        shelf=SHELVES[max(first for first in SHELVES if first <= number)][0],
    )
