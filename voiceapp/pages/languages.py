"""Languages of the pages that visitors see; the operators' site and the documentation are in English."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.utils.translation.trans_real import DjangoTranslation
from django.views.i18n import JavaScriptCatalog

LOCALES = settings.BASE_DIR / "voiceapp" / "pages" / "locale"


class PageLanguageMiddleware(LocaleMiddleware):
    """A visitor's choice (the cookie `language`), else what their browser asks for, else English."""

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith((f"/{settings.ADMIN_PATH}", "/docs")):
            translation.activate(settings.LANGUAGE_CODE)
        elif request.GET.get("language") in dict(settings.LANGUAGES):  # chosen by a site that shows the talk button
            translation.activate(request.GET["language"])
        else:
            super().process_request(request)


@cache
def page_words(language: str) -> dict[str, Any]:
    """Return what the page's modules say, by the English; empty in English."""
    if language == settings.LANGUAGE_CODE:
        return {}
    catalogue = JavaScriptCatalog()
    catalogue.translation = DjangoTranslation(language, domain="djangojs", localedirs=[str(LOCALES)])
    words: dict[str, Any] = catalogue.get_catalog()
    return words
