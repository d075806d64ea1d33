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
}


def stock_reply(which: StockReply, language: str | None) -> str:
    """The sentence in `language` (an ISO 639-1 code with or without a region), in English where there is none."""
    sentences = _SENTENCES[which]
    return sentences.get((language or DEFAULT_LANGUAGE).split("-")[0].lower(), sentences[DEFAULT_LANGUAGE])
