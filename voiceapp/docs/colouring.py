"""Programs as HTML, with comments, strings, keys, numbers and keywords marked for the style sheet to colour."""

from __future__ import annotations

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_WORDS = (
    "and|as|async|await|class|const|curl|def|elif|else|except|export|False|finally|for|from|function|if|import|in|is|let"
    "|new|None|not|null|of|or|pip|npm|python|raise|return|throw|True|true|false|try|var|while|with|yield"
)
_COMMENTS = {
    "python": r"#[^\n]*",
    "sh": r"(?<!\S)#[^\n]*",
    "toml": r"#[^\n]*",
    "javascript": r"(?<![:\w])//[^\n]*",
    "html": r"<!--[\s\S]*?-->|(?<=\s)// [^\n]*",
    "json": r"(?!)",
}
_KEYS = {"toml": r"(?m:^[\w.-]+)(?=\s*=)"}
_ALIASES = {"js": "javascript", "mjs": "javascript", "py": "python", "curl": "sh", "env": "toml"}


def _tokens(language: str, comment: str) -> re.Pattern[str]:
    single = "" if language == "html" else r"|'(?:\\.|[^'\\])*'"  # in HTML, apostrophes are in sentences
    kinds = {
        "comment": comment,
        "key": _KEYS.get(language, r'"[^"\n]*"(?=\s*:)'),
        "string": r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`' + single,
        "number": r"\b\d[\d_]*(?:\.\d+)?\b",
        "word": rf"\b(?:{_WORDS})\b(?!-)",
    }
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))


_TOKENS = {language: _tokens(language, comment) for language, comment in _COMMENTS.items()}


def coloured(code: str, language: str = "") -> SafeString:
    """The program as HTML; its text is the same. A language that is not known stays plain."""
    tokens = _TOKENS.get(_ALIASES.get(language.lower(), language.lower()))
    if tokens is None:
        return escape(code)
    parts, at = [], 0
    for found in tokens.finditer(code):
        parts += [escape(code[at : found.start()]), f'<span class="{found.lastgroup}">{escape(found.group())}</span>']
        at = found.end()
    return mark_safe("".join([*parts, escape(code[at:])]))  # noqa: S308 (every part is escaped)
