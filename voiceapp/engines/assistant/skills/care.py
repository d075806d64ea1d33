"""Replies with care to callers in distress, and with where to find help. Intent counts: accidents and idioms do not."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import load
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

CRISIS = (
    "I am very sorry that you feel this way. You are not alone, and people want to help you right now. Please call or "
    "text 988 in the United States and Canada, call 116 123 in Britain and much of Europe, or your local emergency "
    "number."
)
EMERGENCY = "I cannot call anyone. Please call your emergency number now: 112, or 911 in North America."
SORRY = "I am sorry to hear that. Do you want to talk about it?"
LOSS = "I am so sorry for your loss."
UNWELL = "I am sorry to hear that. If it gets worse, please see a doctor."

_INTENT = (
    r"(?:want|wanna|would like|need|urge|plan|planning|intend|going|gonna|about|ready|decided|tried|trying|attempted|"
    r"think|thinking|thought|thoughts|considering|considered|feel|might|may|will|keep|kept|been|started)"
    r"(?: (?:to|of|about|on|like|i|am|will|might|just|really|that|even|also|again|do)){0,4}"
)
_DYING = re.compile(
    rf"\b{_INTENT} (?:(?:kill(?:ing)?|hang(?:ing)?|shoot(?:ing)?) my ?self|end(?:ing)? (?:my (?:own )?life|it all)|"
    r"tak(?:e|ing) my (?:own )?life|(?:(?:commit|committing) )?suicide|be(?:ing)? dead|die|dying)\b"
    r"(?! (?:my hair|for|of|from|than|laughing|insurance|jacket))|"
    r"^(?:(?:kill|hang) myself|suicide)$|\bcommit suicide$|\bi (?:am|feel|felt|was|have been)(?: \w+)? suicidal\b|"
    r"\bsuicidal (?:thoughts|feelings)\b|\bwish i (?:was|were) dead\b|\brather (?:be dead|die)\b(?! (?:than|of))|"
    r"\b(?:do not|dont|don t) want to (?:live|be alive|exist|be here)(?: (?:any ?more|any longer|like this))?$|"
    r"\bbetter off (?:dead|without me)\b|\bno reason to live\b|\bnever wake up again\b|\blife is not worth living\b|"
    r"\b(?:no|any|the|a) (?:point|sense) (?:in|of) (?:going on|living|life|being alive|staying alive)"
    r"(?: (?:any ?more|any longer))?$|"
    r"\b(?:tired|sick) of (?:living|life|being alive)(?: any ?more)?$|"
    r"\bcannot go on(?: (?:living|any ?more|like this))?$"
)
_IDIOM = re.compile(
    r"\b(?:computer|process|program|server|squad|song|movie|film|book|band|game|level|character|player|project|homework|"
    r"essay|meeting|match|diet|phone|laughing|curiosity)\b"
)
_HURTING = re.compile(
    rf"\b(?:{_INTENT} (?:hurt|harm|cut|burn)(?:t?ing)? my ?self|(?:hurt|harm|cut|burn)(?:t?ing)? my ?self on purpose)\b"
    r"(?! (?:an?|some|off|free|another|in|with|at)\b)"
)
_NOT_MEANT = re.compile(
    r"\b(?:without|not|never|avoid\w*|prevent\w*|accident\w*|mistake|careful|shav\w+|cook\w+|chop\w+|"
    r"slic\w+|play\w*|exercis\w+|work(?:ing)? out|workout|train\w*|gym|lift\w*|stretch\w*|run|running|jump\w*|climb\w*|"
    r"fall\w*)\b"
)
_EMERGENCY = re.compile(
    r"\b(?:call (?:an ambulance|the police|911|112|999|the fire (?:department|brigade))|heart attack|"
    r"i am having a stroke|"
    r"(?:i|he|she|we|somebody|someone) (?:need|needs|is) (?:an ambulance|bleeding badly|unconscious|not breathing)|"
    r"(?:i|he|she) cannot breathe|i have been (?:attacked|raped|stabbed|shot)|my house is on fire|there is a fire|"
    r"(?:took|swallowed) (?:too many|a lot of) pills)\b"
)
_TEMPLATES, _ = load("care")
_SAD = _TEMPLATES["sad"]
_LOSS = _TEMPLATES["loss"]
_UNWELL = _TEMPLATES["unwell"]
_TIRED = _TEMPLATES["tired"]


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it tells of no distress."""
    is_meant = _HURTING.search(said) and not _NOT_MEANT.search(said)
    if is_meant or (_DYING.search(said) and not _IDIOM.search(said)):
        return SkillReply(CRISIS)
    if _EMERGENCY.search(said):
        return SkillReply(EMERGENCY)
    if _LOSS.fits(said):
        return SkillReply(LOSS)
    if _UNWELL.fits(said):
        return SkillReply(UNWELL)
    if _TIRED.fits(said):
        return SkillReply("That sounds tiring. I hope that you can rest soon.")
    return SkillReply(SORRY) if _SAD.fits(said) else None
