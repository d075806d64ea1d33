"""Reading documents into passages that can be said aloud."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from voiceapp.engines.assistant.documents import MAX_FILE_BYTES, MAX_PASSAGE_CHARS, Folder, load, parse, stamp

PAGE = """---
draft: no
---
# Opening *hours*

We open at **nine** and close at 5.30 p.m. every day. See [the map](https://example.org/map).

<!-- not for
the ears -->

```
code that nobody says
```

## Holidays

| day | open |
|---|---|

On holidays:

- we are closed
- except on `Easter Monday`,
  from ten to two.

![a picture](x.png)
"""


def test_a_page_becomes_passages_below_their_headings() -> None:
    passages = parse(PAGE, name="hours")
    assert [(passage.title, passage.heading, passage.sentences) for passage in passages] == [
        (
            "Opening hours",
            "",
            ("We open at nine and close at 5.30 p.m. every day.", "See the map."),
        ),
        ("Opening hours", "Holidays", ("On holidays:",)),
        ("Opening hours", "Holidays", ("we are closed.", "except on Easter Monday, from ten to two.")),
    ]


def test_a_file_without_a_heading_is_called_by_its_name() -> None:
    (passage,) = parse("Just one line", name="02-house_rules")
    assert passage.title == "house rules"
    assert passage.text == "Just one line."


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(f"This is sentence number {number} of a long paragraph." for number in range(60))
    passages = parse(text, name="long")
    assert len(passages) > 3
    assert all(len(passage.text) <= MAX_PASSAGE_CHARS + 60 for passage in passages)
    assert " ".join(passage.text for passage in passages) == text


def test_lines_of_one_paragraph_belong_together() -> None:
    (passage,) = parse("A sentence that goes\non in the next line.", name="x")
    assert passage.sentences == ("A sentence that goes on in the next line.",)


def test_folders_are_read_recursively_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "b" / "deep.TXT").write_text("Deep.")
    (tmp_path / "a.md").write_text("# A\n\nFirst.")
    (tmp_path / "c.pdf").write_text("No.")
    (tmp_path / ".hidden" / "x.md").write_text("Secret.")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    passages = load([Folder(tmp_path), Folder(tmp_path / "missing")])
    assert [passage.text for passage in passages] == ["First.", "Deep."]


def test_passages_know_whether_they_are_of_the_manual(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("One.")
    assert [passage.is_manual for passage in load([Folder(tmp_path, is_manual=True), Folder(tmp_path)])] == [
        True,
        False,
    ]


def test_a_file_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"word " * (MAX_FILE_BYTES // 5 + 1))
    (tmp_path / "small.txt").write_text("Small.")
    assert [passage.text for passage in load([Folder(tmp_path)])] == ["Small."]


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("Café.".encode("latin-1"))
    assert load([Folder(tmp_path)])[0].text.startswith("Caf")


def test_the_stamp_changes_with_the_documents(tmp_path: Path) -> None:
    folders = [Folder(tmp_path)]
    page = tmp_path / "a.md"
    page.write_text("One.")
    first = stamp(folders)
    assert stamp(folders) == first
    os.utime(page, ns=(1, 1))
    touched = stamp(folders)
    assert touched != first
    page.unlink()
    assert stamp(folders) == ()


@pytest.mark.parametrize("seed", ["[", "![", "[a](", "<https://", "<!--", " *a", "**a", "`"])
def test_no_page_takes_more_than_its_length(seed: str) -> None:
    def cost(length: int) -> float:
        began = time.process_time()
        parse(seed * (length // len(seed)) + "!", name="page")
        return time.process_time() - began

    short, long = (min(cost(length) for _ in range(3)) for length in (4_000, 64_000))
    assert long < 60 * short  # 256 times, where each place is tried with all that follow
