"""What this assistant cannot do, said at once, so that nothing pretends to: devices, calls, news, the weather."""

from __future__ import annotations

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import Scene, SkillReply

NO_DEVICES = "I cannot control devices, but I can set a timer."
NO_INTERNET = "I cannot look that up: I have no Internet."
NO_CALLS = "I cannot call or write to anyone."
NO_MUSIC = "I cannot play music, but I know some jokes."
NO_ORDERS = "I cannot buy or book anything."

_BEYOND: tuple[tuple[Phrases, str], ...] = (
    (
        Phrases(
            "(turn|switch) (on|off|up|down) (the|my|all|all the) {thing}",
            "(turn|switch) (the|my|all the) {thing} (on|off|up|down)",
            "(dim|brighten|light) (the|my) {thing}",
            "(open|close|lock|unlock) (the|my) [front|back|garage|living room|kitchen|bedroom]*"
            " (door|doors|window|windows|garage|gate|curtains|blinds|car)",
            "(set|raise|lower) the (temperature|heating|thermostat) [to] {value}",
            "(start|stop) the (vacuum|vacuum cleaner|washing machine|dishwasher|oven|coffee machine|car)",
            "(lights|light) (on|off)",
            "open (spotify|youtube|netflix|chrome|my browser|an app|the app|facebook|instagram|whatsapp)",
            "(take|make) a (photo|picture|selfie|screenshot)",
        ),
        NO_DEVICES,
    ),
    (
        Phrases(
            "(call|phone|ring|text|message|dial) (my|the) {who}",
            "(call|phone|ring) (mom|dad|mum|home|him|her|them|911 for fun)",
            "(send|write|read) [me|my|a|an|the|out]* (email|emails|mail|mails|message|messages|text|texts|sms|"
            "letter) [to|for|from] {who}",
            "(send|read) [me|my|a|an|the|out]* (email|emails|mail|mails|message|messages|text|texts|sms)",
            "(do i have|are there) [any]* [new]* (email|emails|mail|messages)",
        ),
        NO_CALLS,
    ),
    (
        Phrases(
            "(play|put on|start) [some|a|the|my|me|a bit of]* [jazz|rock|pop|classical|good|relaxing|happy|favorite]*"
            " (music|song|songs|jazz|radio|playlist|album|rock|podcast|classical music|audiobook)",
            "(play|put on) {what} by {who}",
            "(play|put on) (some|a bit of|something from|the song|the album) {what}",
            "play (next|previous|the next|the previous) (song|track)",
            "(play|pause) the music",
        ),
        NO_MUSIC,
    ),
    (
        Phrases(
            "(order|buy|get) [me] (a|an|some) [large|small|new]* {what} [for me]",
            "(book|reserve) [me] (a|an|two|the) {what}",
            "(call|get|order) [me] (a|an) (taxi|cab|uber|ride)",
        ),
        NO_ORDERS,
    ),
    (
        Phrases(
            "(what|how) (is|will|was) the (weather|forecast|temperature) [like|be|going to be|be like|outside]* "
            "[today|tomorrow|now|here|outside|"
            "this weekend|tonight|on {day}|in {place}]*",
            "what (is|was) the weather [like] in {place} [today|tomorrow|now|right now]",
            "[the] weather [forecast|today|tomorrow|report]* [for|in] {place}",
            "[the] weather [forecast|today|tomorrow|report]*",
            "(is|will) it [going to|be|get]* (rain|snow|raining|snowing|sunny|cold|warm|hot|cloudy|windy) [today|"
            "tomorrow|outside|"
            "now|later|tonight|here|this weekend]*",
            "(is|will) it [be] (raining|snowing|rain|snow|sunny|cold|hot|warm) [in|at|on|over] {place}",
            "(do i need|should i take|will i need) (an umbrella|a jacket|a coat) [today|tomorrow]*",
            "(is|will) it [going to|be|get]* (rain|snow|raining|snowing|sunny|cold|warm|hot) [today|tomorrow|outside|"
            "now|later|tonight|here]*",
            "how (hot|cold|warm) is it [outside|today|now|in {place}]*",
        ),
        NO_INTERNET,
    ),
    (
        Phrases(
            "(what is|what are|tell me|read [me]|give me|any) [in|on] [the|todays|latest|some|world]* (news|"
            "headlines) [today|"
            "right now]*",
            "what is happening in the world [today]",
            "who (won|is winning|is playing in|plays in) (the|last|todays|yesterdays|tonights) {event}",
            "what (was|is) the score [of {event}]",
            "(what is|how much is|what is the price of|how is) [the|a]* (bitcoin|stock price|stock market|share price|"
            "exchange rate|dollar|euro|gold price|price of gold|price of oil|price of gas) [worth|today|now|right "
            "now|at|trading at|doing]*",
            "[what is|how is|how much is]* [the|a]* [current]* (stock|share) (price|prices) [of|for] {company}",
            "(search|google|look up|look on) [the|for|up|on|internet|web|online|google]* {what}",
            "(what is|how is) [the]* traffic [like]* [today|now|to {place}|on {road}]*",
            "(find|show me|are there any|where is) [a|an|the|some]* (nearest|closest|nearby|next|good) {place}",
            "(find|show me) {what} (near|around) (me|here)",
            "when (does|will) the next {thing} (leave|come|go|arrive)",
            "(who is|who are) the [current]* (president|prime minister|king|queen|chancellor|pope) [of {place}]",
            "what is (on tv|on television|in the cinema|at the movies|playing) [tonight|today|now]*",
            "(where am i|what is my location|where is my (phone|car|dog|wallet|key|keys))",
        ),
        NO_INTERNET,
    ),
)


def reply(said: str, scene: Scene) -> SkillReply | None:
    """`said` is a request in plain form; None when it is not for something that is out of reach here."""
    return next((SkillReply(text) for phrases, text in _BEYOND if phrases.fits(said)), None)
