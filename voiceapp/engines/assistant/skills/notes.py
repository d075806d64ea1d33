"""The caller's name and list, read again from the last that they said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import plain, request

_NAMED = Phrases(
    "[hi|hello|hey]* my name is [actually]* {name} [by the way|and yours|and you]",
    "[you can|please]* call me {name}",
    "[hi|hello|hey]* i am called {name}",
    "people call me {name}",
)
_NOT_NAMES = frozenset(
    [
        "back",
        "later",
        "tomorrow",
        "tonight",
        "today",
        "again",
        "now",
        "when",
        "if",
        "a",
        "an",
        "the",
        "at",
        "in",
        "on",
        "maybe",
        "not",
        "stupid",
        "crazy",
        "please",
        "sometime",
    ]
)
MAX_NAME_WORDS = 3
_MY_NAME = Phrases(
    "what is my [first]* name",
    "what am i called",
    "do you [still]* (know|remember) who i am",
    "[do you|can you]* [still]* (know|remember|say|tell me) my name [again]*",
    "(who am i|say my name|what was my name)",
    "what did i say my name (is|was)",
    "(what did i tell you|did i tell you) my name [is|was]*",
)
_LIST = "[shopping|grocery|groceries|to do|todo|task|my]* list"
_ADD = Phrases(
    f"(add|put) {{items}} (to|on|onto) (my|the|our|a) {_LIST}",
    f"[please]* (make|start|create) (a|my) {_LIST} with {{items}}",
    "(add|also add) {items}",
)
_REMOVE = Phrases(
    f"(remove|delete|take) {{items}} (from|off) (my|the|our) {_LIST}", f"take {{items}} off [my|the]* {_LIST}"
)
_CLEAR = Phrases(f"(clear|empty|delete|erase) (my|the|our|all of the) {_LIST}")
_READ = Phrases(
    f"(what is|what do i have|what have i got|what all is) on (my|the|our) {_LIST}",
    f"(read|show|tell) [me|out]* (my|the|our) {_LIST} [out|to me|again]*",
    f"[what is]* (my|the) {_LIST}",
    f"how many things are on (my|the) {_LIST}",
)
_BETWEEN = re.compile(r",| and | comma ")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is about neither a name nor a list."""
    if (name := _name_in(said)) is not None:
        return SkillReply(f"Nice to meet you, {name}.")
    if _MY_NAME.fits(said):
        told = (_name_in(plain(text)) or _name_in(request(text)) for text in reversed(scene.earlier))
        name = next(filter(None, told), None)
        return SkillReply(f"Your name is {name}." if name else "You have not told me your name yet.")
    if _LAST_ADDED.fits(said) or _is_about_list(said, scene):
        return _list_reply(said, scene)
    return None


_LAST_ADDED = Phrases(f"(what did i|did i) (add|put) [last]* (to|on) (my|the) {_LIST}")


def _name_in(said: str) -> str | None:
    slots = _NAMED.match(said)
    if slots is None:
        return None
    words = slots["name"].split()
    if len(words) > MAX_NAME_WORDS or not _NOT_NAMES.isdisjoint(words):
        return None
    return " ".join(word.capitalize() for word in words)


def _is_about_list(said: str, scene: Scene) -> bool:
    if _ADD.fits(said):
        return " list" in said or bool(_items([*scene.earlier]))
    return any(phrases.fits(said) for phrases in (_REMOVE, _CLEAR, _READ))


def _list_reply(said: str, scene: Scene) -> SkillReply:
    items = _items([*scene.earlier, said])
    if (slots := _ADD.match(said)) is not None:
        return SkillReply(f"I added {slots['items']}. Your list holds {_spoken(items)}.")
    if _CLEAR.fits(said):
        return SkillReply("Your list is empty now.")
    return SkillReply(f"On your list: {_spoken(items)}." if items else "Your list is empty.")


def _items(said: Sequence[str]) -> list[str]:
    """What is on the list after all that was said."""
    items: list[str] = []
    for text in said:
        form = request(text)
        if (slots := _ADD.match(form)) is not None and (items or " list" in form):
            items += [item for part in _split(slots["items"]) if (item := part) not in items]
        elif (slots := _REMOVE.match(form)) is not None:
            gone = _split(slots["items"])
            items = [item for item in items if item not in gone]
        elif _CLEAR.fits(form):
            items = []
    return items


def _split(text: str) -> list[str]:
    return [re.sub(r"^(?:some|a|an|the) ", "", part.strip()) for part in _BETWEEN.split(text) if part.strip()]


def _spoken(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
