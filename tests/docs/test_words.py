"""README, manual and pages are written in plain, complete sentences; the assistant reads the manual aloud."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

PAGES = [Path(settings.BASE_DIR, "README.md"), *sorted(Path(settings.BASE_DIR, "docs").glob("[dm]*/*.md"))]
TEMPLATES = sorted(Path(settings.BASE_DIR, "templates").rglob("*.html"))
SCRIPTS = sorted(Path(settings.BASE_DIR, "static", "voice").rglob("*.js"))
MARKUP = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]+>", re.DOTALL)
SENTENCE = re.compile(r'"([A-Z][^"\n]+[.!?])"')
AVOIDED = re.compile(
    r"\b(nobody|somebody|anybody|everybody|whoever|elsewhere|being told)\b|(?<!there )\b(is|are|was|were) no\b",
    re.IGNORECASE,
)
"""Say "another service", "people who", "does not exist"."""
NOUN = re.compile(r"(?<!SDP )\b(the|an|its|spoken|written|quick) answers?\b", re.IGNORECASE)
"""An answer answers an SDP offer; the assistant gives replies, and HTTP has responses."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_uses_plain_words(page: Path) -> None:
    text = page.read_text()
    assert [found.group() for found in AVOIDED.finditer(text)] == []
    if "webrtc" not in page.stem:
        assert [found.group() for found in NOUN.finditer(text)] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.stem)
def test_pages_use_plain_words(template: Path) -> None:
    text = MARKUP.sub(" ", template.read_text())
    assert [found.group() for words in (AVOIDED, NOUN) for found in words.finditer(text)] == []


def test_scripts_say_things_in_plain_words() -> None:
    said = [sentence for script in SCRIPTS for sentence in SENTENCE.findall(script.read_text())]
    assert len(said) > 40
    assert [sentence for sentence in said for words in (AVOIDED, NOUN) if words.search(sentence)] == []
