"""Other languages, of which the assistant knows this much: it says in them that it knows English only."""

from __future__ import annotations

import re

from voiceapp.engines.assistant.skills.phrases import Phrases
from voiceapp.engines.assistant.skills.scene import SkillReply

ENGLISH_ONLY = "I understand English only, I am sorry."
_ONLY_ENGLISH = {
    "de": "Leider verstehe ich nur Englisch.",
    "es": "Lo siento, solo entiendo inglés.",
    "fr": "Désolé, je ne comprends que l'anglais.",
    "it": "Mi dispiace, capisco solo l'inglese.",
    "pt": "Desculpe, só entendo inglês.",
    "nl": "Sorry, ik versta alleen Engels.",
    "zh": "抱歉，我只懂英语。",
    "ja": "すみません、英語しか分かりません。",
    "ko": "죄송하지만 영어만 알아듣습니다.",
    "ru": "Извините, я понимаю только по-английски.",
}
_WORDS = {
    "de": "guten hallo danke bitte wie geht ist das ich bin du mir dir uhr spät wetter nicht was heißt und der die auf "
    "deutsch sprichst sprechen sie",
    "es": "hola gracias buenos buenas días como cómo estás está qué que por favor hora es la el tiempo hace dónde "
    "quiero",
    "fr": "bonjour bonsoir merci salut comment ça va quelle heure est il je suis vous le la quel temps fait parlez où",
    "it": "ciao buongiorno grazie come stai che ora sono il la tempo fa dove per favore buona sera voglio",
    "pt": "olá obrigado obrigada bom dia tudo bem como está que horas são por favor onde você quero",
    "nl": "hallo goedemorgen dank je wel hoe gaat het met hoe laat is ik ben wat het weer waar alstublieft",
}
_OWN = {  # words that English does not have: one of them is needed
    "de": "guten danke bitte geht ich dir mir uhr wetter nicht heißt spät deutsch sprichst sprechen",
    "es": "hola gracias buenos buenas días cómo estás está qué favor hora dónde quiero tiempo",
    "fr": "bonjour bonsoir merci beaucoup salut comment ça quelle heure je suis vous quel parlez où",
    "it": "ciao buongiorno grazie stai ora sono dove favore buona voglio",
    "pt": "olá obrigado obrigada bom tudo bem horas são você quero",
    "nl": "goedemorgen dank hoe laat gaat ik alstublieft",
}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]{2}")),
)
_ASKED = Phrases(
    "(do|can|could|will|would) you (speak|understand|talk|know) [in|any]* (german|french|spanish|italian|chinese|"
    "japanese|korean|"
    "russian|portuguese|dutch|arabic|hindi|turkish|polish|other languages|another language)",
    "(speak|talk|answer|reply|switch) [to|in]* (german|french|spanish|italian|chinese|japanese|korean|russian|"
    "portuguese|dutch|"
    "arabic|hindi|turkish|polish)",
    "(translate|how do you say) {what} (in|into|to) {language}",
)


def foreign(text: str) -> SkillReply | None:
    """The reply to a sentence in another language, as a person typed or said it; None for English."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return SkillReply(_ONLY_ENGLISH[language])
    words = re.findall(r"[^\W\d_]+", text.lower())
    if not words:
        return None
    for language, own in _OWN.items():
        known = set(_WORDS[language].split()) | set(own.split())
        if not set(own.split()).isdisjoint(words) and sum(word in known for word in words) >= 0.6 * len(words):
            return SkillReply(_ONLY_ENGLISH[language])
    return None


def reply(said: str, scene: object) -> SkillReply | None:
    """`said` is a request in plain form; None when it asks for no other language."""
    return SkillReply(ENGLISH_ONLY) if _ASKED.fits(said) else None
