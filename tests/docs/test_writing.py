"""Markdown on our pages."""

from __future__ import annotations

import pytest

from voiceapp.docs.writing import anchor, to_html, to_inline_html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[x](javascript:alert(1))",
        "![x](data:text/html;base64,PHNjcmlwdD4=)",
        "# <b onclick=x>title</b>",
        "```\n</code><script>\n```",
        "```<script>\nx\n```",
        "| <i>a</i> |\n|---|\n| <style>b</style> |",
    ],
)
def test_it_shows_html_as_text(hostile: str) -> None:
    html = to_html(hostile) + to_inline_html(hostile)
    for element in ("<script", "<img", "<b ", "<i>", "<style", 'href="javascript', "onerror=x"):
        assert element not in html


def test_it_makes_every_heading_a_place() -> None:
    html = to_html("## What you need\n\ntext\n\n## What you need\n\n## ?")
    assert '<h2 id="what-you-need"><a class="place" href="#what-you-need">What you need</a></h2>' in html
    assert '<h2 id="what-you-need-2">' in html
    assert '<h2 id="section">' in html
    assert to_html("## See [this](/docs)") == '<h2 id="see-this-docs">See <a href="/docs">this</a></h2>\n'
    assert to_html("## Part", has_links=False) == "<h2>Part</h2>\n"


def test_it_lets_the_keyboard_scroll_what_is_wide() -> None:
    html = to_html("```\ncode\n```\n\n| a |\n|---|\n| b |")
    assert '<pre><code tabindex="0">code' in html
    assert '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>' in html
    assert "</table>\n</div>" in html


def test_it_names_places_by_their_words() -> None:
    assert anchor("What happens when you speak?") == "what-happens-when-you-speak"
    assert anchor("top_n / n") == "top-n-n"
