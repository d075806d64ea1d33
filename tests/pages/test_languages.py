"""Languages of the pages: every sentence has its translation, and visitors get the language that they ask for."""

from __future__ import annotations

import re
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.test import AsyncClient, Client

from voiceapp.pages.languages import LOCALES, page_words

from . import catalogues

CATALOGUES = list(catalogues.catalogues())
PLACES = re.compile(r"%\(\w+\)[sd]|\{\w+\}|<[^>]+>")


@pytest.mark.parametrize(
    ("path", "wanted"), CATALOGUES, ids=[f"{path.parts[-3]}-{path.stem}" for path, _ in CATALOGUES]
)
def test_a_catalogue_holds_what_the_pages_say_and_is_compiled(path: Path, wanted: set[catalogues.Message]) -> None:
    """After a change of words: `python -m tests.pages.catalogues`, and translate what it names."""
    catalogue = polib.pofile(str(path))
    assert {(entry.msgid, entry.msgid_plural) for entry in catalogue} == wanted
    assert catalogue.untranslated_entries() == []
    compiled = {(entry.msgid, entry.msgid_plural): entry for entry in polib.mofile(str(path.with_suffix(".mo")))}
    for entry in catalogue:
        made = compiled[entry.msgid, entry.msgid_plural]
        assert (made.msgstr, made.msgstr_plural) == (entry.msgstr, entry.msgstr_plural), entry.msgid
        for translation in [*entry.msgstr_plural.values()] if entry.msgid_plural else [entry.msgstr]:
            assert sorted(PLACES.findall(translation)) == sorted(PLACES.findall(entry.msgid)), translation


def test_no_tag_or_call_escapes_the_catalogues() -> None:
    for template in catalogues.pages():
        source = template.read_text()
        tags = len(re.findall(r"\{%\s*trans", source)), len(re.findall(r"\{%\s*blocktrans", source))
        called = source.count('_("')
        assert (len(catalogues.TRANSLATE.findall(source)), len(catalogues.BLOCK.findall(source))) == (
            tags[0] + called,
            tags[1],
        ), template.name


def test_every_language_but_english_has_its_catalogues() -> None:
    assert {path.name.lower().replace("_", "-") for path in LOCALES.iterdir()} == {
        code for code, _ in settings.LANGUAGES if code != "en"
    }


@pytest.mark.django_db
def test_a_visitor_gets_the_language_of_their_browser_or_choice(client: Client) -> None:
    for asked, code, words in (
        ("de-AT,de;q=0.9", "de", "Zum Sprechen anmelden"),
        ("zh-CN", "zh-hans", "登录后开始对话"),
        ("pt-BR", "en", "Sign in to talk"),
        ("!!;q=x, \x00", "en", "Sign in to talk"),
    ):
        page = client.get("/login", headers={"Accept-Language": asked}).content.decode()
        assert f'<html lang="{code}">' in page
        assert words in page
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "fr"
    assert "Connectez-vous" in client.get("/login", headers={"Accept-Language": "de"}).content.decode()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "../../etc"
    assert "Zum Sprechen" in client.get("/login", headers={"Accept-Language": "de"}).content.decode()


@pytest.mark.django_db
def test_operators_pages_and_documentation_are_in_english(client: Client, desk: Client) -> None:
    for path in (f"/{settings.ADMIN_PATH}", "/docs"):
        assert 'lang="en' in desk.get(path, headers={"Accept-Language": "de"}).content.decode(), path
    assert 'lang="de"' in client.get("/nothing-here", headers={"Accept-Language": "de"}).content.decode()


@pytest.mark.django_db(transaction=True)
async def test_the_page_brings_its_modules_words(async_client: AsyncClient, settings: object) -> None:
    page = (await async_client.get("/", headers={"Accept-Language": "ja"})).content.decode()
    assert '<script id="words" type="application/json">{"' in page
    assert page_words("ja")["Listening"] == "お話しください"
    english = (await async_client.get("/", headers={"Accept-Language": "en"})).content.decode()
    assert '<script id="words" type="application/json">{}</script>' in english
