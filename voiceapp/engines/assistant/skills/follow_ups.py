"""Requests that change a part of the one before: "And of Sweden?", "No, I meant seven." """

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from voiceapp.engines.assistant.skills.order import FOLLOWED, Skill
from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.reckoning.numbers import read_number
from voiceapp.engines.assistant.skills.reckoning.timers import instead
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply
from voiceapp.engines.assistant.skills.words import plain, request

_TEMPLATES, _ = load("follow_ups")
MAX_ASKED_WORDS, MAX_TOPIC_WORDS, MAX_SPAN_WORDS = 6, 16, 4
_ADDED = frozenset(("in", "on", "at", "for", "from", "to", "until"))
"""Words that begin a part that the request before lacked."""
MAX_BARE_WORDS = 3
"""A follow-up without a word such as "and"."""
LOOK_BACK = 4
"""Sentences in which the request is found that others changed."""


def reply(text: str, scene: Scene) -> SkillReply | None:
    """The reply of a skill to the request before, with `text` in place of a part of it."""
    said = plain(text)
    correction, follow_up = _TEMPLATES["correction"].match(said), _TEMPLATES["follow_up"].match(said)
    slots = correction or follow_up or ({"asked": said} if len(said.split()) <= MAX_BARE_WORDS else {})
    if not slots:
        return None
    asked = slots["asked"]
    is_whole = correction is not None and len(asked.split()) > 1
    found = _first(asked, scene) if is_whole else None
    topic = _topic(scene) if found is None else None
    if topic is not None:
        found = next(_changed(topic, asked, scene), None)
    if found is None:
        return None
    return instead(found[2], scene) if correction else found[2]


Found = tuple[str, Skill, SkillReply]
"""A request, the skill that understands it, and its reply."""


def _first(form: str, scene: Scene) -> Found | None:
    return next(((form, skill, found) for skill in FOLLOWED if (found := skill(form, scene)) is not None), None)


def _topic(scene: Scene) -> Found | None:
    """The last request that was understood, as later sentences changed it."""
    topic: Found | None = None
    alone = replace(scene, last_reply="", earlier=())
    for said in scene.earlier[-LOOK_BACK:]:
        whole = _first(request(said), alone)
        if whole is None and topic is not None:
            slots = next(filter(None, (phrases.match(plain(said)) for phrases in _TEMPLATES.values())), {"asked": said})
            whole = _first(slots["asked"], alone) or next(_changed(topic, slots["asked"], alone), None)
        topic = whole or topic
    return topic


def _changed(topic: Found, asked: str, scene: Scene) -> Iterator[Found]:
    """The requests in which `asked` stands for a part of `topic`: a number for one, and the shortest and last first."""
    form, skill, before = topic
    words, new = form.split(), asked.split()
    if len(words) > MAX_TOPIC_WORDS or not 1 <= len(new) <= MAX_ASKED_WORDS:
        return
    for length in range(1, min(len(words), MAX_SPAN_WORDS) + 1):
        for start in range(len(words) - length, -1, -1):
            if (read_number(words, start) is None) != (read_number(new) is None):
                continue
            changed = " ".join((*words[:start], *new, *words[start + length :]))
            found = skill(changed, scene)
            if found is not None and (found.reminders is None) == (before.reminders is None) and found != before:
                yield changed, skill, found
    longer = f"{form} {asked}"
    if new[0] in _ADDED and (found := skill(longer, scene)) is not None and found.text != before.text:
        yield longer, skill, found
