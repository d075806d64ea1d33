"""Sentences for where there is no reply, in the language of the session, in words that every visitor knows."""

from __future__ import annotations

from enum import Enum

DEFAULT_LANGUAGE = "en"


class StockReply(Enum):
    NOT_UNDERSTOOD = "not_understood"
    """The caller spoke, and no word was understood."""
    NO_REPLY = "no_reply"
    """The model that writes replies cannot be asked."""
    BROKEN_OFF = "broken_off"
    """The model stopped in the middle of a reply."""
    ENGLISH_ONLY = "english_only"
    """The model replies in English alone, and the caller speaks another language."""


_SENTENCES: dict[StockReply, dict[str, str]] = {
    StockReply.NOT_UNDERSTOOD: {
        "en": "I did not catch that.",
        "de": "Das habe ich nicht verstanden.",
        "es": "No lo he entendido.",
        "fr": "Je n'ai pas compris.",
        "it": "Non ho capito.",
        "ja": "すみません、聞き取れませんでした。",
        "ko": "잘 못 들었습니다.",
        "nl": "Dat heb ik niet verstaan.",
        "pt": "Não percebi o que disse.",
        "ru": "Я не расслышал.",
        "zh": "我没有听清楚。",
    },
    StockReply.NO_REPLY: {
        "en": "I am sorry, I cannot answer right now.",
        "de": "Es tut mir leid, ich kann gerade nicht antworten.",
        "es": "Lo siento, ahora mismo no puedo responder.",
        "fr": "Je suis désolé, je ne peux pas répondre pour le moment.",
        "it": "Mi dispiace, in questo momento non posso rispondere.",
        "ja": "申し訳ありませんが、今はお答えできません。",
        "ko": "죄송하지만 지금은 대답할 수 없습니다.",
        "nl": "Het spijt me, ik kan nu niet antwoorden.",
        "pt": "Lamento, mas agora não posso responder.",
        "ru": "Извините, сейчас я не могу ответить.",
        "zh": "抱歉，我现在无法回答。",
    },
    StockReply.BROKEN_OFF: {
        "en": "I am sorry, I cannot go on.",
        "de": "Es tut mir leid, ich kann nicht weitersprechen.",
        "es": "Lo siento, no puedo continuar.",
        "fr": "Je suis désolé, je ne peux pas continuer.",
        "it": "Mi dispiace, non posso continuare.",
        "ja": "申し訳ありませんが、続けることができません。",
        "ko": "죄송하지만 계속할 수 없습니다.",
        "nl": "Het spijt me, ik kan niet verdergaan.",
        "pt": "Lamento, mas não posso continuar.",
        "ru": "Извините, я не могу продолжить.",
        "zh": "抱歉，我无法继续。",
    },
    StockReply.ENGLISH_ONLY: {
        "en": "I can only reply in English. With a larger language model on this server I would know your language.",
        "de": "Ich kann nur auf Englisch antworten. Mit einem größeren Sprachmodell auf diesem Server ginge Deutsch.",
        "es": "Solo puedo responder en inglés. Con un modelo de lenguaje más grande en este servidor hablaría español.",
        "fr": "Je ne peux répondre qu'en anglais. Un plus grand modèle de langue sur ce serveur saurait le français.",
        "it": "Rispondo solo in inglese. Con un modello linguistico più grande su questo server saprei l'italiano.",
        "ja": "英語でしかお答えできません。このサーバーに大きな言語モデルがあれば、日本語でお答えできます。",
        "ko": "영어로만 대답할 수 있습니다. 이 서버에 더 큰 언어 모델이 있으면 한국어로 대답할 수 있습니다.",
        "nl": "Ik antwoord alleen in het Engels. Met een groter taalmodel op deze server zou ik Nederlands kennen.",
        "pt": "Só sei responder em inglês. Com um modelo de linguagem maior neste servidor, saberia português.",
        "ru": "Я умею отвечать только по-английски. С большей языковой моделью на этом сервере я знал бы русский.",
        "zh": "我只能用英语回答。如果这台服务器有更大的语言模型，我就能说中文。",
    },
}


def stock_reply(which: StockReply, language: str | None) -> str:
    """The sentence in `language` (an ISO 639-1 code with or without a region), in English where there is none."""
    sentences = _SENTENCES[which]
    return sentences.get((language or DEFAULT_LANGUAGE).split("-")[0].lower(), sentences[DEFAULT_LANGUAGE])
