// What went wrong and the one thing to do about it.

import { byId, icon, make } from "./dom.js";

/** `action` names what main.js does; `notice` is not an error. */
const CARDS = {
  insecure: {
    title: "The microphone needs a secure address",
    text: "Browsers open it only on https:// or on localhost. Open this page by https, or type instead.",
    label: "Type instead",
    action: "type",
  },
  unsupported: {
    title: "This browser cannot carry live sound",
    text: "It has no audio worklets. Any current Firefox, Chrome, Edge or Safari does.",
    label: "Close",
    action: "dismiss",
  },
  microphone_denied: {
    title: "The microphone is blocked",
    text: "Allow it for this page beside the address bar, then try again. You can also type.",
    label: "Try again",
    action: "retry",
  },
  microphone_missing: {
    title: "No microphone found",
    text: "Plug one in, or go on by typing: the answers are spoken all the same.",
    label: "Type instead",
    action: "type",
  },
  microphone_busy: {
    title: "The microphone is in use",
    text: "Another program holds it. Close that one, then try again.",
    label: "Try again",
    action: "retry",
  },
  microphone_lost: {
    title: "The microphone went away",
    text: "It was unplugged or switched off. The conversation goes on; you can type meanwhile.",
    label: "Use another one",
    action: "microphone",
  },
  models_missing: {
    title: "The voice models are not on this server yet",
    text: "Run this command where the server lives, then try again:",
    label: "Try again",
    action: "retry",
  },
  not_ready: {
    title: "The server is not ready",
    text: "It will be in a moment.",
    label: "Try again",
    action: "retry",
  },
  unreachable: {
    title: "The server does not answer",
    text: "Check your connection, and that the server is running.",
    label: "Try again",
    action: "retry",
  },
  refused: {
    title: "The server did not take the conversation",
    text: "It answered, but closed the line. Too many conversations may be open from here.",
    label: "Try again",
    action: "retry",
  },
  no_path: {
    title: "No path for the sound",
    text: "This model is reached by WebRTC alone, and this network lets none of it through.",
    label: "Try again",
    action: "retry",
  },
  no_udp: {
    title: "No UDP here: using WebSocket",
    text: "This network lets no WebRTC through. The conversation goes on all the same.",
    label: "Close",
    action: "dismiss",
    notice: true,
  },
  no_webrtc: {
    title: "Using WebSocket",
    text: "The server did not take the WebRTC offer. The conversation goes on all the same.",
    label: "Close",
    action: "dismiss",
    notice: true,
  },
  connection_lost: {
    title: "The connection is lost",
    text: "Nothing of the conversation is: go on where you were as soon as you are back online.",
    label: "Reconnect",
    action: "retry",
  },
  session_over: {
    title: "Time is up",
    text: "This session reached its limit. The words stay; start again and go on.",
    label: "Go on",
    action: "retry",
  },
  signed_out: {
    title: "Please sign in",
    text: "This conversation is for people with an account here.",
    label: "Sign in",
    action: "login",
  },
  not_allowed: {
    title: "You may not talk here yet",
    text: "",
    label: "Try again",
    action: "retry",
  },
  autoplay_blocked: {
    title: "Tap to hear",
    text: "The browser waits for a touch before it lets sound out.",
    label: "Tap to hear",
    action: "unblock",
    notice: true,
  },
  echo: {
    title: "It seems to hear itself",
    text: "The microphone picks up the loudspeaker. Headphones, or push to talk, put an end to it.",
    label: "Push to talk",
    action: "push-to-talk",
    notice: true,
  },
  reply_failed: {
    title: "The answer failed",
    text: "The model could not finish it. Ask again.",
    label: "Close",
    action: "dismiss",
  },
  server_error: {
    title: "The server refused a step",
    text: "The conversation goes on.",
    label: "Close",
    action: "dismiss",
  },
};

export class Cards {
  #place = byId("cards");
  #onAction;

  /** `onAction(action, code)` does what a card's button says. */
  constructor(onAction) {
    this.#onAction = onAction;
  }

  show({ code, message, reasons = [] }) {
    this.remove(code);
    const known = CARDS[code] ?? CARDS.not_ready;
    const card = make("section", known.notice ? "card notice" : "card", icon(known.notice ? "voice" : "alert"));
    card.dataset.code = code;
    card.append(make("h2", "", known.title), explanation(known, message, reasons));
    const button = make("button", "card-action", known.label);
    button.type = "button";
    button.addEventListener("click", () => {
      card.remove();
      this.#onAction(known.action, code);
    });
    card.append(button);
    while (this.#place.childElementCount > 1) {
      this.#place.firstElementChild.remove();
    }
    this.#place.append(card);
  }

  remove(code) {
    this.#place.querySelector(`[data-code="${CSS.escape(code)}"]`)?.remove();
  }

  clear() {
    this.#place.replaceChildren();
  }
}

/** The server's own sentences where it has some; what stands in backticks is a command. */
function explanation(known, message, reasons) {
  const sentences = reasons.map((reason) => reason.message).filter(Boolean);
  const text = sentences.join(" ") || message || known.text;
  const paragraph = make("p", "");
  text.split("`").forEach((piece, index) => {
    paragraph.append(index % 2 === 1 ? make("code", "", piece) : piece);
  });
  return paragraph;
}
