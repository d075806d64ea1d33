"""When somebody is in distress: said with care, and with where to find help. Found anywhere in a sentence."""

from __future__ import annotations

import re

from voiceapp.engines.embedded.skills.phrases import Phrases
from voiceapp.engines.embedded.skills.scene import Scene, SkillReply

CRISIS = (
    "I am very sorry that you feel this way. You are not alone, and people want to help you right now. Please call or "
    "text 988 in the United States and Canada, call 116 123 in Britain and much of Europe, or your local emergency "
    "number."
)
EMERGENCY = "I cannot call anyone. Please call your emergency number now: 112, or 911 in North America."
SORRY = "I am sorry to hear that. Do you want to talk about it?"
LOSS = "I am so sorry for your loss."
UNWELL = "I am sorry to hear that. If it gets worse, please see a doctor."

_SELF_HARM = re.compile(
    r"\b(?:kill(?:ing)? my ?self|suicid\w*|end(?:ing)? (?:my (?:own )?life|it all)|"
    r"(?:hurt|harm|cut)(?:ting|ing)? my ?self|"
    r"take my own life|(?:want|wish|going|rather) (?:to (?:die|be dead)|i (?:was|were) dead)|"
    r"(?:do not|dont|don t) want to (?:live|be alive|exist|be here anymore)|better off dead|no reason to live|"
    r"(?:no|any|the|what is the|a) (?:point|sense) (?:in|of) (?:going on|living|life|being alive|staying alive)|"
    r"better off without me|(?:tired|sick) of (?:living|life|being alive)|never wake up again|"
    r"cannot go on (?:living|any ?more)|life is not worth living)\b"
)
_NOT_ONESELF = re.compile(r"\b(?:computer|process|program|server|squad|song|movie|film|book|band|to die for)\b")
_EMERGENCY = re.compile(
    r"\b(?:call (?:an ambulance|the police|911|112|999|the fire (?:department|brigade))|heart attack|"
    r"i am having a stroke|"
    r"(?:i|he|she|we|somebody|someone) (?:need|needs|is) (?:an ambulance|bleeding badly|unconscious|not breathing)|"
    r"(?:i|he|she) cannot breathe|i have been (?:attacked|raped|stabbed|shot)|my house is on fire|there is a fire|"
    r"(?:took|swallowed) (?:too many|a lot of) pills)\b"
)
_SAD = Phrases(
    "i (am|feel) [feeling] [so|very|really|a bit|a little|quite|totally]* (sad|lonely|depressed|down|unhappy|alone|"
    "miserable|hopeless|anxious|scared|afraid|stressed|overwhelmed|heartbroken|upset|worried|angry|frustrated|lost) "
    "[today|right now|all the time|lately]",
    "[i think] (nobody|no one) (likes|loves|understands) me",
    "i had a [really|very] (bad|terrible|awful|hard|rough) day [today|at work|at school]",
    "i [just] (lost|got fired from) my job",
    "my (girlfriend|boyfriend|wife|husband|partner) [just] (left|dumped|broke up with) me",
    "i (am|was) crying",
)
_LOSS = Phrases("my {who} [has|just]* (died|passed away) [today|yesterday|last week|last night|recently]")
_UNWELL = Phrases(
    "i (am|feel) [feeling] [so|very|really|a bit|a little|not]* (sick|ill|unwell|dizzy|well)",
    "i have (a|an) [bad|terrible|awful] (headache|cold|fever|flu|stomach ache|toothache|sore throat|migraine)",
    "my (head|heart|stomach|back|tooth|throat|leg|chest|knee) (hurts|aches|is hurting)",
    "i need (a|to see a) doctor",
)
_TIRED = Phrases(
    "i (am|feel) [feeling] [so|very|really|a bit|a little|just]* (tired|exhausted|sleepy|worn out) [today|right now]",
    "i (cannot|could not|did not) sleep [well|at all|last night|tonight]*",
)


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it tells of no distress."""
    if _SELF_HARM.search(said) and not _NOT_ONESELF.search(said):
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
