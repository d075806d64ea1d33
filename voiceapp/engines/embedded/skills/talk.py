"""What belongs to talking itself: greetings, say that again, slower, stop, who are you, what can you do."""

from __future__ import annotations

import re

from voiceapp.engines.embedded.skills.scene import Scene, SkillAnswer

MIN_RATE, MAX_RATE = 0.6, 1.8
RATE_STEP = 1.2

HELP = (
    "I can tell you the time and the date, do sums, convert units, flip a coin, spell a word, and repeat what I said. "
    "You can ask me to speak slower or faster. And I answer questions about this program and its documents, "
    "such as: how do I interrupt you?"
)
IDENTITY = (
    "I am the built-in assistant of this voice server. I run inside the server itself, and I answer from its documents. "
    "I am a program, not a language model."
)

_GREETING = re.compile(
    r"(?:hi|hello|hey|hiya|howdy|hallo|good (?:morning|afternoon|evening|day))"
    r"(?: (?:there|assistant|computer|voice ?app|again|everyone|hello|hi|hey|to you))*"
)
_HOW_ARE_YOU = re.compile(r"(?:(?:hi|hello|hey) )?how (?:are|is) (?:you|it)(?: (?:doing|going|feeling))?(?: today)?")
_THANKS = re.compile(
    r"(?:(?:ok|okay|great|perfect|cool|nice|good|alright|no) )*(?:thanks|thank you)"
    r"(?: (?:very much|so much|a lot|for (?:that|your help|the help)|assistant|computer|again))*"
)
_BYE = re.compile(
    r"(?:(?:ok|okay|thanks|thank you|alright) )*(?:bye|bye bye|see you(?: later| soon| tomorrow)?|good night|farewell|talk to you later)"
)
_REPEAT = re.compile(
    r"(?:(?:please )?(?:say|repeat)(?: (?:that|it|this|what you (?:just )?said|yourself|the last (?:answer|sentence|part)|the answer))?"
    r"(?: (?:again|once more|one more time|please))*|(?:come|one more time|once more)(?: again)?|say again|again(?: please)?|pardon(?: me)?|i beg your pardon"
    r"|(?:sorry )?what (?:did|have) you (?:just )?(?:say|said)(?: just now| again)?|what was that(?: again)?|(?:sorry )?come again"
    r"|i (?:did not|could not|cannot) (?:hear|catch|get|understand)(?: (?:that|you|it|what you said))?|sorry what|what)"
)
_REPEAT_AFTER_ME = re.compile(r"(?:repeat after me|say after me) (?P<text>.{1,300})")
_STOP = re.compile(
    r"(?:(?:no|ok|okay|please|hey|just) )*(?:stop(?: (?:it|that|talking|speaking|now|please|there))*|be quiet|quiet|shut up|hush|silence|shush"
    r"|never mind(?: that)?|forget (?:it|that|about it)|cancel(?: (?:that|it))?|that is (?:all|enough|it|fine)(?: for now)?|enough|hold on(?: a (?:second|minute|moment))?"
    r"|wait(?: a (?:second|minute|moment))?|no thanks|no thank you|one moment|nothing)(?: please)?"
)
_SLOWER = re.compile(
    r"(?:(?:please )?(?:speak|talk|go|say it|say that|read|be|speaking|talking) )?(?:a (?:little|bit|little bit|lot) )?(?:more slowly|more slow|slower|slow down|slowly)"
    r"(?: (?:a (?:little|bit|little bit|lot)|please))*|(?:that (?:is|was)|you (?:are|were|speak|talk)(?: (?:speaking|talking|going))?) (?:way |much |a (?:bit|little) )?too (?:fast|quick|quickly)"
    r"|(?:decrease|reduce|lower) (?:the|your) (?:speed|speaking speed|rate|speaking rate)|not so fast"
)
_FASTER = re.compile(
    r"(?:(?:please )?(?:speak|talk|go|say it|say that|read|be|speaking|talking) )?(?:a (?:little|bit|little bit|lot) )?(?:more quickly|faster|speed up|speed it up|quicker)"
    r"(?: (?:a (?:little|bit|little bit|lot)|please))*|(?:that (?:is|was)|you (?:are|were|speak|talk)(?: (?:speaking|talking|going))?) (?:way |much |a (?:bit|little) )?too (?:slow|slowly)"
    r"|(?:increase|raise) (?:the|your) (?:speed|speaking speed|rate|speaking rate)"
)
_NORMAL = re.compile(
    r"(?:(?:please )?(?:speak|talk|go)(?: back)? )?(?:at |to |in )?(?:a |the |your )?(?:normal|usual|default|regular) (?:speed|pace|rate|tempo)(?: (?:again|please))*"
    r"|(?:speak|talk) normal(?:ly)?(?: again)?|(?:reset|go back to normal|back to normal)(?: (?:the|your) (?:speed|rate|pace))?"
)
_HELP = re.compile(
    r"help(?: me)?(?: please)?|i need (?:some )?help|what (?:can|do|could) you (?:do|help(?: me)? with|know|answer)(?: for me)?|what (?:can|could|should|do|may) i (?:ask|say|do)(?: (?:you|here|to you))?"
    r"|what are you (?:able to do|capable of|good (?:at|for))|how can you help(?: me)?|what (?:are|is) your (?:skills|skill|capabilities|abilities|functions)|what kind of (?:things|questions) can (?:i ask|you (?:do|answer))(?: you)?"
    r"|what else can you do"
)
_WHO = re.compile(
    r"(?:who|what) are you|what is your name|do you have a name|(?:who|what) am i (?:talking|speaking) (?:to|with)|who is (?:this|there)|introduce yourself|tell me about yourself|about yourself"
    r"|are you (?:an? )?(?:real )?(?:human|person|robot|machine|bot|ai|program|real|computer|alive|language model|large language model|chat ?gpt|llm)(?: being| person)?"
)
_HEARING = re.compile(
    r"(?:(?:hi|hello|hey) )*(?:are you (?:there|still there|listening|with me)|(?:can|do) you (?:hear|understand)(?: me)?(?: now)?|anybody there|is anybody there|you there)"
)
_TEST = re.compile(
    r"(?:(?:this is )?(?:just )?(?:a )?(?:mic(?:rophone)? |sound |audio )?(?:test|check|testing)(?: (?:test|testing|check|one|two|to|three|1|2|3))*)"
)
_HEAR_ME = re.compile(r"(?:hear|understand) me(?: now)?")
_PRAISE = re.compile(
    r"(?:that is |that was |you are |very |really |so |pretty |wow |oh |ok |okay )*(?:great|good|nice|cool|perfect|awesome|amazing|excellent|wonderful|fantastic|impressive|good job|well done|nice work|wow|good to know|interesting)"
)
_OKAY = re.compile(
    r"(?:(?:ok|okay|yes|yeah|yep|yup|sure|alright|all right|right|fine|i see|got it|understood|no|nope|nah|uh huh|mhm|mm hmm|hmm|i understand|makes sense) ?)+"
)
_JOKE = re.compile(
    r"(?:(?:tell|say|make|know) )?(?:me )?(?:a|another|one more|any|some) (?:(?:good|funny|short|dad) )?jokes?|make me laugh|joke"
)
_JOKES = (
    "Why did the microphone break up with the speaker? It needed some feedback.",
    "I would tell you a joke about silence, but it only works if nobody says anything.",
    "Why was the computer cold? It left its windows open.",
    "There are ten kinds of people: those who understand binary, and those who do not.",
)


def answer(said: str, scene: Scene) -> SkillAnswer | None:
    """`said` is a request in plain form; None when it is about something else than this conversation's own course."""
    if match := _REPEAT_AFTER_ME.fullmatch(said):
        return SkillAnswer(f"{match['text'][:1].upper()}{match['text'][1:]}.")
    if _REPEAT.fullmatch(said):
        return SkillAnswer(scene.last_answer or "I have not said anything yet.")
    if (changed := _pace(said, scene)) is not None:
        return changed
    for pattern, text in (
        (_STOP, "Okay."),
        (_HELP, HELP),
        (_WHO, IDENTITY),
        (_HEARING, "Yes, I hear you."),
        (_HEAR_ME, "Yes, I hear you."),
        (_TEST, "I hear you loud and clear."),
        (_HOW_ARE_YOU, "All my parts are running, thank you. What would you like to know?"),
        (_GREETING, "Hello. What would you like to know?"),
        (_THANKS, "You are welcome."),
        (_BYE, "Goodbye."),
        (_PRAISE, "Thank you. What else would you like to know?"),
        (_OKAY, "All right. What would you like to know?"),
    ):
        if pattern.fullmatch(said):
            return SkillAnswer(text)
    if _JOKE.fullmatch(said):
        told = (
            sum(joke in scene.last_answer for joke in _JOKES)
            and _JOKES.index(next(joke for joke in _JOKES if joke in scene.last_answer)) + 1
        )
        return SkillAnswer(_JOKES[told % len(_JOKES)])
    return None


def _pace(said: str, scene: Scene) -> SkillAnswer | None:
    rate = float(scene.context.get("speech_rate") or 1.0)
    if _NORMAL.fullmatch(said):
        return SkillAnswer("Back to my normal speed.", speech_rate=1.0)
    if _SLOWER.fullmatch(said):
        if rate <= MIN_RATE:
            return SkillAnswer("This is as slow as I can speak.", speech_rate=MIN_RATE)
        return SkillAnswer("Okay, I will speak slower.", speech_rate=max(MIN_RATE, round(rate / RATE_STEP, 2)))
    if _FASTER.fullmatch(said):
        if rate >= MAX_RATE:
            return SkillAnswer("This is as fast as I can speak.", speech_rate=MAX_RATE)
        return SkillAnswer("Okay, I will speak faster.", speech_rate=min(MAX_RATE, round(rate * RATE_STEP, 2)))
    return None
