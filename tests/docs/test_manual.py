"""The manual's pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from voiceapp.docs.manual import ManualPage, page, pages, pages_in


def test_it_has_a_page_for_every_file_in_order() -> None:
    manual, deploy = (sorted(Path(settings.BASE_DIR, "docs", name).glob("*.md")) for name in ("manual", "deploy"))
    slugs = [file.stem.partition("-")[2] for file in manual] + [file.stem for file in deploy]
    assert [page.slug for page in pages()] == [*slugs, "settings"]
    assert len(set(slugs)) == len(slugs)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.slug)
def test_every_page_has_a_title_a_summary_and_a_text(page: ManualPage) -> None:
    assert page.title
    assert "#" not in page.title
    assert page.summary.endswith((".", ":", "?", "!"))
    assert page.html.count("<p>") >= 1
    assert "<h1" not in page.html


def test_it_reads_a_folder(tmp_path: Path) -> None:
    tmp_path.joinpath("02-second.md").write_text("# Second\n\nText here. And more.\n\n## Part\n\n* point\n")
    tmp_path.joinpath("01-first-page.md").write_text("# First\n\nOnly a sentence.\n")
    tmp_path.joinpath("notes.txt").write_text("not a page")
    first, second = pages_in(tmp_path)
    assert (first.slug, first.title, first.summary) == ("first-page", "First", "Only a sentence.")
    assert second.summary == "Text here."
    assert '<h2 id="part"><a class="place" href="#part">Part</a></h2>' in second.html


def test_it_has_no_page_of_another_name() -> None:
    assert page("connecting-a-program") is not None
    assert page("..") is None
