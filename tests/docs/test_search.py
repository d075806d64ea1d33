"""Search over the documentation."""

from __future__ import annotations

from voiceapp.docs.search import MAX_RESULTS, MAX_WORDS, SearchEntry, marked, plain, search, sections, words_of

ENTRIES = [
    SearchEntry("/a", "Cancel a task", "Tasks", "POST /tasks/{id}/cancel", "It stops a task that waits."),
    SearchEntry("/b", "List tasks", "Tasks", "GET /tasks", "All tasks, which may be canceled, of the account."),
    SearchEntry("/c", "Voices", "Manual", "", f"{'Many words. ' * 60}Here <b>is</b> a needle. {'And more. ' * 60}"),
]


def urls(query: str) -> list[str]:
    return [result.url for result in search(ENTRIES, query)]


def test_every_word_has_to_occur_somewhere() -> None:
    assert urls("cancel task") == ["/a", "/b"]
    assert urls("CANCEL needle") == []
    assert urls("/tasks/{id}/cancel") == ["/a"]


def test_an_empty_query_finds_nothing() -> None:
    assert urls("") == urls(" ,; ") == []


def test_a_title_counts_more_than_a_text() -> None:
    assert urls("canceled") == ["/b"]
    assert urls("task")[0] == "/a"


def test_an_excerpt_shows_the_words_where_they_stand() -> None:
    (result,) = search(ENTRIES, "needle")
    assert "Here &lt;b&gt;is&lt;/b&gt; a <mark>needle</mark>." in result.excerpt
    assert result.excerpt.startswith("… ")
    assert result.excerpt.endswith(" …")
    assert len(result.excerpt) < 400


def test_names_are_shown_where_only_they_have_the_word() -> None:
    (result,) = search(ENTRIES, "{id}")
    assert result.excerpt == "POST /tasks/<mark>{id}</mark>/cancel"


def test_words_are_marked_and_html_is_text() -> None:
    assert marked("A <task> & a TASK", ["task"]) == "A &lt;<mark>task</mark>&gt; &amp; a <mark>TASK</mark>"
    assert marked("a.b axb", ["a.b"]) == "<mark>a.b</mark> axb"


def test_words_are_few_and_each_comes_once() -> None:
    assert words_of('How do I  "cancel" a task, a TASK?') == ["how", "do", "i", "cancel", "a", "task"]
    assert len(words_of(" ".join(f"w{number}" for number in range(99)))) == MAX_WORDS


def test_results_are_bounded() -> None:
    many = [SearchEntry(f"/{number}", "Task", "Tasks") for number in range(MAX_RESULTS + 5)]
    assert len(search(many, "task")) == MAX_RESULTS


def test_a_page_is_taken_apart_at_its_headings() -> None:
    html = '<p>One.</p><h2 id="a-b"><a href="#a-b">A &amp; B</a></h2><p>Two.</p><h3 id="c">C</h3><p>Three.</p>'
    assert list(sections(html)) == [("", "", "One."), ("a-b", "A & B", "Two."), ("c", "C", "Three.")]


def test_the_words_of_html_are_read_as_they_are_shown() -> None:
    assert plain("<p>It is <code>400</code>, <em>so</em>.</p>\n<p>Next &lt;b&gt;</p>") == "It is 400, so. Next <b>"
