"""Small talk: what people say to an assistant to see who it is, to be kind or unkind, or out of boredom."""

from __future__ import annotations

from collections.abc import Sequence

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

_JOKE = Phrases(
    "[tell|say|make|know|do you know|do you have|have you got|got|i want|i want to hear|let us hear]* [me] "
    "(a|another|one more|any|"
    "some|"
    "your best) [good|funny|short|dad|other]* (joke|jokes)",
    "[tell|say] [me] something funny",
    "make me (laugh|smile)",
    "(joke|jokes)",
)
_FACT = Phrases(
    "[tell|give] [me] (something|a|an|any|another|one more) [fun|interesting|random|new|cool]*"
    " (fact|interesting|thing|facts) [please]",
    "[tell|teach] [me] something [new|interesting|cool|fun]",
    "(surprise|entertain|amuse) me",
    "i am [so|very|really]* bored",
    "(fun|random) fact",
)
_ANOTHER = Phrases(
    "[tell|give] [me] (another|another one|one more|more|next|the next one|more of those|a different one|another "
    "please)",
    "[do you|have you|can you]* [know|have|got|tell|tell me]* [any|some|a few]* (more|others|other ones)",
    "(encore|keep going|next one|more please)",
)
_JOKES = (
    "Why did the microphone break up with the speaker? It needed some feedback.",
    "Why was the computer cold? It left its windows open.",
    "There are ten kinds of people: those who understand binary, and those who do not.",
    "What do you call a fish without eyes? A fsh.",
    "Why did the scarecrow win a prize? He was outstanding in his field.",
    "I told my plants a joke. They did not laugh, but they are growing on me.",
    "What is brown and sticky? A stick.",
    "Why do bees have sticky hair? They use honeycombs.",
)
_FACTS = (
    "Honey never spoils: jars from Egyptian tombs could still be eaten.",
    "An octopus has three hearts.",
    "Bananas are berries, and strawberries are not.",
    "A day on Venus is longer than its year.",
    "Sharks are older than trees.",
    "Wombats make droppings in the shape of cubes.",
)
_VERY = "[so|very|really|just|such|all|pretty|quite|being|a|an|the|totally|completely]*"

_FIXED: tuple[tuple[Phrases, str], ...] = (
    (
        Phrases(
            f"(you are|you suck|that is|this is|what) {_VERY} (stupid|dumb|useless|idiot|an idiot|terrible|awful|bad|"
            f"the worst|"
            "ugly|annoying|boring|worthless|garbage|trash|rubbish|horrible|a moron|moron|a piece of garbage|not "
            "smart|not"
            " very smart|not helpful|no help) [are you|is not it]",
            "you [stupid|bloody|fucking|dumb]* (idiot|moron|fool|robot|machine|asshole|bastard|bitch)",
            "you suck",
            "i hate you",
            "(fuck|screw) you",
            "(idiot|stupid|moron|asshole|bastard|shit|damn|damn it)",
            "go to hell",
        ),
        "I am sorry. I will try to do better.",
    ),
    (
        Phrases(
            "i [really] (love|like) you [so much|a lot|too]*",
            "you are [so|very|really|such a|a|the|my]* (nice|cute|sweet|funny|smart|clever|beautiful|best|friend|"
            "kind|good"
            " friend|best friend|good listener)",
            "you [really]* make me (happy|smile|laugh)",
        ),
        "That is very kind of you.",
    ),
    (Phrases("will you (marry me|be my (girlfriend|boyfriend|friend|valentine))"), "I am happy to be your assistant."),
    (
        Phrases(
            "are you [a|an|really a]* (robot|human|person|computer|machine|real|real person|alive|program|ai|bot|"
            "conscious|man"
            "|woman|boy|girl)",
            "are you [a]* (human|person|man|robot) or [a]* (robot|machine|computer|woman|human)",
        ),
        "I am a computer program.",
    ),
    (
        Phrases("how old are you", "when were you (born|made|built|created)", "what is your age"),
        "I have no age: I am a program.",
    ),
    (
        Phrases("where (are you [from]|do you (live|come from))", "where were you (born|made)"),
        "I live on the server that you are talking to.",
    ),
    (
        Phrases(
            "who (made|built|created|programmed|invented|wrote) you", "who is your (creator|maker|developer|boss|owner)"
        ),
        "The developers of Voiceapp made me.",
    ),
    (
        Phrases("what are you doing [right now|now|tonight]*", "what is up", "what is going on", "sup", "what is new"),
        "I am listening to you. What can I do for you?",
    ),
    (
        Phrases("(do you sleep|do you dream|do you eat|are you (tired|hungry|happy|sad|lonely|ok|okay|busy))"),
        "I am fine, thank you.",
    ),
    (
        Phrases(
            "(can|will) you (sing|dance) [for me|me a song|a song|something]",
            "sing [me]* (a song|something|happy birthday)",
        ),
        "I cannot sing, but I can tell you a joke.",
    ),
    (
        Phrases("do you have [any]* feelings", "do you (feel|think|love me|like me|hate me|have a soul)"),
        "I have no feelings, but I like to help.",
    ),
    (
        Phrases("do you (remember|know) me", "do you know who i am"),
        "I remember only what you say in this conversation.",
    ),
    (
        Phrases(
            "(nice|good|pleased|great) to (meet|see|talk to) you",
            "(i missed you|long time no see|welcome back|i am back|it is nice to (meet|see) you)",
        ),
        "Nice to meet you, too.",
    ),
    (
        Phrases("(happy birthday|merry christmas|happy new year|happy easter|happy holidays) [to you]"),
        "Thank you, and all the best to you.",
    ),
    (
        Phrases(
            "(that is|that was|this is|you are|it is)"
            " [not|all|completely|so]* (wrong|incorrect|false|not right|not correct|right|not true|not what i (asked|"
            "meant|said))",
            "(wrong|incorrect|no that is not it|you misunderstood [me]|you got (it|that|me) wrong)",
            "i did not (say|mean|ask) that",
            "that is not what i (asked|said|meant|wanted) [for]",
        ),
        "I am sorry. Please say it again in other words.",
    ),
    (
        Phrases(
            "[can you|could you|please|speak|talk|a bit|a little|be|get]* (louder|quieter|softer|more quietly|more "
            "loudly) [please]",
            "[turn|the|your]* (volume|sound) [up|down|louder|higher|lower]*",
            "turn (up|down) the (volume|sound)",
            "turn (it|yourself) (up|down)",
            "(speak|talk) up",
            "you are too (loud|quiet)",
            "i cannot hear you [well|very well]",
            "(mute|unmute) [yourself]",
        ),
        "Please use the volume of your device.",
    ),
    (
        Phrases(
            "what (is|are) the",
            "(how|why|when|where|what|who|which) (do|does|did|can|is|are|was|will|would) [i|you|we|the|a]*",
            "(can|could|would|will) you [please|tell me|maybe]*",
            "i [would like|want|need] to",
            "i (want|need|think|was|would|am going)",
            "(tell me|give me|show me) [about|a|the]*",
            "[and|but|so|because|if|the|a|um|uh|well|like|you know]*",
            "(so i|well i|and i|but the|and the|if i|because i)",
        ),
        "Yes? Please go on.",
    ),
)


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is no small talk."""
    for wanted, told in ((_JOKE, _JOKES), (_FACT, _FACTS)):
        if wanted.fits(said) or (_ANOTHER.fits(said) and scene.last_reply in told):
            return SkillReply(_next(told, scene.replies))
    return next((SkillReply(text) for phrases, text in _FIXED if phrases.fits(said)), None)


def _next(told: Sequence[str], replies: Sequence[str]) -> str:
    """The first that was not told yet; once all were, the one after the last."""
    fresh = next((text for text in told if text not in replies), None)
    if fresh is not None:
        return fresh
    last = next(text for text in reversed(replies) if text in told)
    return told[(told.index(last) + 1) % len(told)]
