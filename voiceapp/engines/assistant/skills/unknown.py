"""Replies when no skill, document or language model has one: what a word means, a refusal, or an honest sentence."""

from __future__ import annotations

from voiceapp.engines.assistant.skills.facts import dictionary
from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed
from voiceapp.engines.assistant.skills.words import request

_, _REPLIES = load("unknown")
QUESTION: list[str] = read("unknown")["question"]
STATEMENT: list[str] = read("unknown")["statement"]
NONSENSE: str = read("unknown")["nonsense"]
MAX_NONSENSE_WORDS = 3
"""Replies to a question and to anything else, each the next one after the one before."""


def reply_to_unknown(text: str, scene: Scene, *, is_question: bool) -> SkillReply:
    """The reply to `text`, as a person said or typed it."""
    said = request(text)
    if (found := fixed(_REPLIES, said) or dictionary.known(said)) is not None:
        return found
    words = said.split()
    if len(words) <= MAX_NONSENSE_WORDS and not any(map(dictionary.knows, words)):
        return SkillReply(NONSENSE)
    texts = QUESTION if is_question else STATEMENT
    used = [texts.index(earlier) for earlier in scene.replies if earlier in texts]
    return SkillReply(texts[(used[-1] + 1) % len(texts) if used else 0])
