"""The index behind search: every operation, event and code, and every section of the manual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.urls import reverse

from . import codes, manual
from .events import event_pages
from .fields import Field
from .reference import Operation, Page
from .search import SearchEntry, plain, sections
from .writing import anchor


def entries(pages: Sequence[Page]) -> list[SearchEntry]:
    """All of them, the reference first."""
    return [*_operations(pages), *_events(), *_codes(), *_manual()]


def _operations(pages: Sequence[Page]) -> Iterator[SearchEntry]:
    for page in pages:
        url = reverse("docs-family", args=[page.family.slug])
        for operation in page.operations:
            fields = list(_fields(operation))
            yield SearchEntry(
                url=f"{url}#{operation.id}",
                title=operation.summary,
                where=f"Reference, {page.family.title}",
                names=" ".join([operation.method, operation.path, *operation.also, *(field.path for field in fields)]),
                text=" ".join([plain(operation.description), *(plain(field.description) for field in fields)]),
            )
        for path, meaning in page.family.sockets.items():
            yield SearchEntry(f"{url}#sockets", "WebSockets", f"Reference, {page.family.title}", path, meaning)


def _events() -> Iterator[SearchEntry]:
    for page in event_pages().values():
        for by, found in (("client", page.client), ("server", page.server)):
            for event in found:
                names = " ".join(field.path for field in event.fields)
                yield SearchEntry(
                    f"{page.url}#{event.name}", event.name, f"{page.title}, {by}", names, plain(event.meaning)
                )
        for title in page.sequences:
            yield SearchEntry(f"{page.url}#{anchor(title)}", title, page.title, names="sequence barge-in")


def _fields(operation: Operation) -> Iterator[Field]:
    yield from operation.parameters
    if operation.body is not None:
        yield from operation.body.fields
    for answer in operation.answers:
        for body in answer.bodies:
            yield from body.fields


def _codes() -> Iterator[SearchEntry]:
    url = reverse("docs-errors")
    groups = (("refusals", codes.REFUSALS), ("events", codes.EVENT_CODES), ("close-codes", codes.CLOSE_CODES))
    for place, found in groups:
        for code in found:
            names = f"{code.code} {code.compatible} {code.status}"
            yield SearchEntry(
                f"{url}#{place}", code.code, "Errors and close codes", names, f"{code.meaning} {code.remedy}"
            )


def _manual() -> Iterator[SearchEntry]:
    for page in manual.pages():
        url = reverse("manual-page", args=[page.slug])
        for place, title, text in sections(page.html):
            if place:
                yield SearchEntry(f"{url}#{place}", title, f"Manual, {page.title}", text=text)
            else:
                yield SearchEntry(url, page.title, "Manual", text=text)
