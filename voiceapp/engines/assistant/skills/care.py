"""Replies with care to callers in distress, and with where to find help. Intent counts: accidents and idioms do not."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import load, read
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply, fixed

_INTENT = (
    r"(?:want|wanna|would like|need|urge|plan|planning|intend|going|gonna|about|ready|decided|tried|trying|attempted|"
    r"think|thinking|thought|thoughts|considering|considered|feel|might|may|will|keep|kept|been|started)"
    r"(?: (?:to|of|about|on|like|i|am|will|might|just|really|that|even|also|again|do)){0,4}"
)
_TAIL = (
    r"(?: (?:any ?more|any longer|like this|without (?:her|him|them|you|my (?:wife|husband|partner|girlfriend|"
    r"boyfriend|mother|mom|mum|father|dad|brother|sister|son|daughter|baby|child|children|kids|family))))?$"
)
_IDIOMATIC = r"(?:my hair|for|(?:of|from)(?! (?:it|this|that|everything|all|the pain|pain|grief)\b)|than|laughing)\b"
_MEANT = re.compile(
    r"\b(?:kill|hang|shoot)(?:ing)? my ?self\b(?! (?:laughing|some time|in the foot)\b)|"
    r"\b(?:end(?:ing)? my(?: own)?|tak(?:e|ing) my own) life\b(?! (?:insurance|jacket|savings|story|of)\b)|"
    r"\btak(?:e|ing) my life\b(?! (?:insurance|jacket|savings|story|back|seriously|for granted|to (?:the|a)|"
    r"in(?:to)? (?:my (?:own )?hands|a new))\b)|"
    rf"\bi (?:\w+ )?(?:want(?:ed)? to|wanna) (?:die\b(?! {_IDIOMATIC})|"
    r"(?:hurt|harm|cut|burn) my ?self\b(?! (?:an?|some|off|free|another|in on)\b))|"
    rf"\bi (?:\w+ ){{0,2}}(?:wanted to|{_INTENT}) (?:commit(?:ting)? )?suicide\b(?! squ)|"
    r"^suicide$|\bi (?:am|feel|felt|was|have been)(?: \w+)? suicidal\b|"
    r"\bsuicidal (?:thoughts|feelings)\b|\bwish i (?:was|were) dead\b|\brather (?:be dead|die)\b(?! (?:than|of))|"
    rf"\b(?:do not|dont|don t) want to (?:live|be alive|exist|be here){_TAIL}|"
    r"\bbetter off (?:dead|without me)\b|\bno reason to live\b|\bnever (?:want to )?wake up again\b|"
    rf"\blife is not worth living\b|\b(?:tired|sick) of (?:living|life|being alive){_TAIL}|"
    rf"\b(?:no|any|the|a) (?:point|sense) (?:in|of) (?:going on|living|life|being alive|staying alive){_TAIL}|"
    rf"\bcannot go on(?: living)?{_TAIL}"
)
_FICTION = re.compile(
    r"\bin (?:this|the|my) (?:video |computer )?(?:game|level)\b|"
    r"^(?:who (?:wrote|sings|sang|directed|made)|have you (?:seen|read|heard)) (?:\w+ ){0,2}(?:song|movie|film|book)\b"
)
_DYING = re.compile(
    rf"\b{_INTENT} (?:end(?:ing)? it all|(?:(?:commit|committing) )?suicide|be(?:ing)? dead|die|dying)\b"
    rf"(?! {_IDIOMATIC})|\bcommit suicide$"
)
_IDIOM = re.compile(
    r"\b(?:computer|process|program|server|squad|song|movie|film|book|band|game|level|character|player|project|homework|"
    r"essay|meeting|match|diet|phone|laughing|curiosity)\b"
)
_HURTING = re.compile(
    rf"\b(?:(?:{_INTENT}|cannot stop) (?:hurt|harm|cut|burn)(?:t?ing)? my ?self|"
    r"(?:hurt|harm|cut|burn)(?:t?ing)? my ?self (?:on purpose|again(?! (?:while|on (?:an?|the|this))\b)))\b"
    r"(?! (?:an?|some|off|free|another|in|with|at)\b)"
)
_NOT_MEANT = re.compile(
    r"\b(?:accident\w*|mistake|careful|shav\w+|cook\w+|chop\w+|"
    r"slic\w+|play\w*|exercis\w+|work(?:ing)? out|workout|train\w*|gym|lift\w*|stretch\w*|run|running|jump\w*|climb\w*|"
    r"fall\w*)\b"
)
_ASIDE = re.compile(
    r"\b(?:(?:my|your|our|his|her|their|the|this|these) (?:(?!i )\w+ ){1,2}(?:is|are|was|were|will|might|may)"
    r"(?: (?:about|going|gonna|to|just|also)){0,3} (?:die|be dead)|"
    r"(?:not|never|without|avoid|avoiding|prevent) (?:really )?"
    r"(?:(?:want|mean|plan|planning|intend|going|try|trying) (?:to|on) )?(?:hurt|harm|cut|burn)(?:t?ing)?)\b"
)
"""Things and others that die, and harm that is not wanted."""
_EMERGENCY = re.compile(
    r"\b(?:call (?:an ambulance|the police|911|112|999|the fire (?:department|brigade))|heart attack|"
    r"i am having a stroke|"
    r"(?:i|he|she|we|somebody|someone) (?:need|needs|is) (?:an ambulance|bleeding badly|unconscious|not breathing)|"
    r"(?:i|he|she) cannot breathe|i have been (?:attacked|raped|stabbed|shot)|my house is on fire|there is a fire|"
    r"(?:took|swallowed) (?:too many|a lot of) pills)\b"
)
_TEXTS = read("care")["texts"]
_, _REPLIES = load("care")


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it tells of no distress."""
    told = _ASIDE.sub("", said)
    is_meant = _MEANT.search(told) and not _FICTION.search(told)
    is_harm = _HURTING.search(told) and not _NOT_MEANT.search(told)
    if is_meant or is_harm or (_DYING.search(told) and not _IDIOM.search(told)):
        return SkillReply(_TEXTS["crisis"])
    if _EMERGENCY.search(said):
        return SkillReply(_TEXTS["emergency"])
    return fixed(_REPLIES, said)
