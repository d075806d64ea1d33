"""The caller's name and list, read again from the last that they said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import listed, plain, request

_TEMPLATES, _ = load("notes")
_NOT_NAMES = frozenset(read("notes")["not_names"].split())
MAX_NAME_WORDS = 3
_LIST = "[shopping|grocery|groceries|to do|todo|task|my]* list"
_BETWEEN = re.compile(r" and | comma ")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is about neither a name nor a list."""
    if (name := _name_in(said)) is not None:
        return SkillReply(f"Nice to meet you, {name}.")
    if _TEMPLATES["my_name"].fits(said):
        told = (_name_in(plain(text)) or _name_in(request(text)) for text in reversed(scene.earlier))
        name = next(filter(None, told), None)
        return SkillReply(f"Your name is {name}." if name else "You have not told me your name yet.")
    if _TEMPLATES["notes"].fits(said):
        noted = [slots["note"] for text in scene.earlier if (slots := _TEMPLATES["note"].match(request(text)))]
        return SkillReply(f"You told me: {listed(noted)}." if noted else "You have not told me to note anything.")
    if _TEMPLATES["note"].fits(said) and " list" not in said:
        return SkillReply("I will remember it for this conversation.")
    if _TEMPLATES["last_added"].fits(said) or _is_about_list(said, scene):
        return _list_reply(said, scene)
    return None


def _name_in(said: str) -> str | None:
    slots = _TEMPLATES["named"].match(said)
    if slots is None:
        return None
    words = slots["name"].split()
    if len(words) > MAX_NAME_WORDS or not _NOT_NAMES.isdisjoint(words):
        return None
    return " ".join(word.capitalize() for word in words)


def _is_about_list(said: str, scene: Scene) -> bool:
    if _TEMPLATES["add"].fits(said):
        return " list" in said or bool(_items([*scene.earlier]))
    return any(phrases.fits(said) for phrases in (_TEMPLATES["remove"], _TEMPLATES["clear"], _TEMPLATES["read"]))


def _list_reply(said: str, scene: Scene) -> SkillReply:
    items = _items([*scene.earlier, said])
    if (slots := _TEMPLATES["add"].match(request(said))) is not None:
        return SkillReply(f"I added {listed(_split(slots['items']))}. Your list holds {listed(items)}.")
    if _TEMPLATES["clear"].fits(said):
        return SkillReply("Your list is empty now.")
    return SkillReply(f"On your list: {listed(items)}." if items else "Your list is empty.")


def _items(said: Sequence[str]) -> list[str]:
    """Return the items on the list after all that was said."""
    items: list[str] = []
    for text in said:
        form = request(text)
        if (slots := _TEMPLATES["add"].match(form)) is not None and (items or " list" in form):
            items += [item for part in _split(slots["items"]) if (item := part) not in items]
        elif (slots := _TEMPLATES["remove"].match(form)) is not None:
            gone = _split(slots["items"])
            items = [item for item in items if item not in gone]
        elif _TEMPLATES["clear"].fits(form):
            items = []
    return items


def _split(text: str) -> list[str]:
    return [re.sub(r"^(?:some|a|an|the) ", "", part.strip()) for part in _BETWEEN.split(text) if part.strip()]
