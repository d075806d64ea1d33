"""What belongs to talking itself: greetings, say that again, slower, stop, who are you, what can you do."""

from __future__ import annotations

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

MIN_RATE, MAX_RATE = 0.6, 1.8
RATE_STEP = 1.2

HELP = (
    "I can tell you the time and the date, do sums, convert units, set timers, keep a list, flip a coin, and tell "
    "jokes. "
    "You can ask me to speak slower or faster. And I answer questions about this program, such as: "
    "how do I interrupt you?"
)
IDENTITY = "I am the built-in assistant of this voice server: a program that runs on the server itself."

_REPEAT_AFTER_ME = Phrases("(repeat|say) after me {text}")
_REPEAT = Phrases(
    "(say|repeat) [that|it|this|yourself|the [last] answer|the last sentence] [again|once more|one more time]*",
    "(say|repeat) what you [just] said [again]",
    "[sorry] come again",
    "(again|once more|one more time|pardon|pardon me|i beg your pardon|sorry|sorry what|what|what was that|excuse me)",
    "what was that again",
    "[sorry] what (did|have) you [just] (say|said) [just now|again]",
    "i (did not|could not|cannot|do not) (hear|catch|get|understand) [that|you|it|what you said]",
)
_STOP = Phrases(
    "[no|ok|okay|please|hey|just]* stop [it|that|talking|speaking|now|please|there]*",
    "[please] (be quiet|quiet|shut up|hush|silence|shush|enough|wait|hold on|cancel) [please|that|it]",
    "(nothing|one moment) [please]",
    "(wait|hold on) [just] (a|one) (second|minute|moment)",
    "[oh|no|ok|okay]* never mind [that]",
    "[oh|no|ok|okay]* forget (it|that|about it|about that)",
    "(that is|that will be) (all|enough|it|fine) [for now]",
    "no (thanks|thank you)",
)
_SLOWER = Phrases(
    "[please] [can you|could you] [speak|talk|go|read|say (that|it)] [a (little|bit|lot|little bit)]"
    " (slower|more slowly|slowly) [a (little|bit|lot|little bit)] [please]",
    "[please] slow down [a (little|bit|lot|little bit)] [please]",
    "(that (is|was)|you (are|were|speak|talk)) [speaking|talking|going] [way|much|a bit|a little]"
    " too (fast|quick|quickly)",
    "(decrease|reduce|lower) (the|your) (speed|speaking speed|rate|speaking rate)",
    "not so fast",
)
_FASTER = Phrases(
    "[please] [can you|could you] [speak|talk|go|read|say (that|it)] [a (little|bit|lot|little bit)]"
    " (faster|quicker|more quickly) [a (little|bit|lot|little bit)] [please]",
    "[please] speed (up|it up) [a (little|bit|lot|little bit)] [please]",
    "(that (is|was)|you (are|were|speak|talk)) [speaking|talking|going] [way|much|a bit|a little] too (slow|slowly)",
    "(increase|raise) (the|your) (speed|speaking speed|rate|speaking rate)",
)
_NORMAL = Phrases(
    "[please] [speak|talk|[go] back] [at|to|in] [a|the|your] (normal|usual|default|regular) (speed|pace|rate) [again]",
    "(speak|talk) (normal|normally) [again]",
    "reset (the|your) (speed|rate|pace)",
)
_HELP = Phrases(
    "help [me] [please]",
    "i need [some] help",
    "what [else] (can|do|could) you (do|know|answer) [for me]",
    "what can you help [me] with",
    "what [else] (can|could|should|do|may) i (ask|say|do) [you|here|to you]",
    "what are you (able to do|capable of|good at|good for)",
    "how can you help [me]",
    "what (are|is) your (skills|skill|capabilities|abilities|functions)",
    "what kind of (things|questions) can (i ask|you answer|you do) [you]",
)
_WHO = Phrases(
    "(who|what) are you [exactly]",
    "what is your name",
    "do you have a name",
    "(who|what) am i (talking|speaking) (to|with)",
    "who is (this|there)",
    "introduce yourself",
    "what is this [thing|program|app|page|site]",
    "[tell me] about yourself",
    "are you [a|an] [real] (human|person|robot|machine|bot|ai|program|real|computer|alive) [being|person]",
    "are you a [large] language model",
    "are you (chatgpt|chat gpt)",
)
_HEARING = Phrases(
    "[hi|hello|hey]* are you (there|still there|listening|with me)",
    "[hi|hello|hey]* [can you|do you] (hear|understand) me [now]",
    "(is anybody|anybody|are you|you) there",
)
_TEST = Phrases(
    "[this is] [just] [a] [mic|microphone|sound|audio] (test|check|testing)"
    " [test|testing|check|one|two|to|three|1|2|3]*"
)
_HOW_ARE_YOU = Phrases("[hi|hello|hey] how (are you|is it|are things) [doing|going|feeling] [today]")
_GREETING = Phrases(
    "(hi|hello|hey|hiya|howdy|morning|good (morning|afternoon|evening|day))"
    " [there|assistant|computer|voiceapp|voice app|again|everyone|hello|hi|hey|to you]*"
)
_THANKS = Phrases(
    "[ok|okay|great|perfect|cool|nice|good|alright]* (thanks|thank you)"
    " [very much|so much|a lot|for (that|your help|the help)|assistant|computer|again]*"
)
_BYE = Phrases(
    "[ok|okay|thanks|thank you|alright]* (bye|bye bye|see you|farewell|talk to you) [later|soon|tomorrow|bye]",
    "good night",
)
_PRAISE = Phrases(
    "[that is|that was|this is|you are|very|really|so|pretty|wow|oh|ok|okay|haha|ha|lol]*"
    " (great|good|nice|cool|perfect|awesome|amazing|excellent|wonderful|impressive|interesting)",
    "(good job|well done|nice work|wow)",
    "good to know",
    "[ha|haha|lol|funny|that is funny|very funny]*",
)
_ASSENT = Phrases(
    "(ok|okay|yes|yeah|yep|yup|sure|alright|all right|right|fine|i see|got it|understood|no|nope|hmm|makes sense)"
    " [ok|okay|yes|yeah|sure|right|fine|no]*"
)
_FIXED = (
    (_STOP, "Okay."),
    (_HELP, HELP),
    (_WHO, IDENTITY),
    (_HEARING, "Yes, I hear you."),
    (_TEST, "I hear you loud and clear."),
    (_HOW_ARE_YOU, "All my parts are running, thank you. What would you like to know?"),
    (_GREETING, "Hello. What would you like to know?"),
    (_THANKS, "You are welcome."),
    (_BYE, "Goodbye."),
    (_PRAISE, "Thank you. What else would you like to know?"),
    (_ASSENT, "All right. What would you like to know?"),
)


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is about something else than this conversation's own course."""
    if (after_me := _REPEAT_AFTER_ME.match(said)) is not None:
        return SkillReply(f"{after_me['text'].capitalize()}.")
    if _REPEAT.fits(said):
        return SkillReply(scene.last_reply or "I have not said anything yet.")
    if (changed := _pace(said, scene)) is not None:
        return changed
    return next((SkillReply(text) for phrases, text in _FIXED if phrases.fits(said)), None)


def _pace(said: str, scene: Scene) -> SkillReply | None:
    rate = scene.facts.speech_rate
    if _NORMAL.fits(said):
        return SkillReply("Back to my normal speed.", speech_rate=1.0)
    if _SLOWER.fits(said):
        if rate <= MIN_RATE:
            return SkillReply("This is as slow as I can speak.", speech_rate=MIN_RATE)
        return SkillReply("Okay, I will speak slower.", speech_rate=max(MIN_RATE, round(rate / RATE_STEP, 2)))
    if _FASTER.fits(said):
        if rate >= MAX_RATE:
            return SkillReply("This is as fast as I can speak.", speech_rate=MAX_RATE)
        return SkillReply("Okay, I will speak faster.", speech_rate=min(MAX_RATE, round(rate * RATE_STEP, 2)))
    return None
