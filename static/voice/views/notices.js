// What went wrong and the one thing to do about it.

import { NOTICES } from "../notices.js";
import { filled, isKnown, t } from "../words.js";
import { byId, icon, make } from "./dom.js";

/** The last two notices, each with what a person can do about it. */
export class Notices {
  #place = byId("cards");
  #onAction;

  /** `onAction(action, code)` does what a card's button says. */
  constructor(onAction) {
    this.#onAction = onAction;
  }

  /** `values` stand for what is in braces in a notice; `details` are shown as they are. */
  show({ code, message = "", reasons = [], values = {}, details = "" }) {
    this.remove(code);
    const known = NOTICES[code] ?? NOTICES.not_ready;
    const card = make("section", known.isNews ? "card notice" : "card", icon(known.isNews ? "voice" : "alert"));
    card.dataset.code = code;
    card.append(make("h2", "", filled(known.title, values)), explanation(known, message, reasons, values));
    if (details) {
      const block = make("pre", "card-details", details);
      block.tabIndex = 0; // long ones scroll
      block.setAttribute("role", "group");
      block.setAttribute("aria-label", t("Arguments"));
      card.append(block);
    }
    const actions = make("div", "card-actions", this.#button(card, "card-action", known.label, known.action));
    if (known.alternative) {
      actions.append(this.#button(card, "card-alternative", known.alternative, known.alternativeAction ?? "dismiss"));
    }
    const { checkUrl } = document.body.dataset;
    if (known.offersCheck && checkUrl) {
      const link = make("a", "card-alternative", t("Check the connection"));
      Object.assign(link, { href: checkUrl, target: "_blank" });
      actions.append(link);
    }
    card.append(actions);
    for (const old of [...this.#place.querySelectorAll('.card:not([data-code="approval"])')].slice(0, -1)) {
      old.remove();
    }
    this.#place.append(card);
    if (known.lastsMs) {
      setTimeout(() => card.remove(), known.lastsMs);
    }
  }

  /** A button that closes its card and then does something. */
  #button(card, className, label, action) {
    const button = make("button", className, label);
    button.type = "button";
    button.addEventListener("click", () => {
      card.remove();
      this.#onAction(action, card.dataset.code);
    });
    return button;
  }

  /** Whether one of these is shown. */
  has(...codes) {
    return codes.some((code) => this.#place.querySelector(`[data-code="${CSS.escape(code)}"]`) !== null);
  }

  remove(code) {
    this.#place.querySelector(`[data-code="${CSS.escape(code)}"]`)?.remove();
  }

  clear() {
    this.#place.replaceChildren();
  }
}

/** What is wrong, in the words of a notice. */
export function explained({ code, message = "", reasons = [], values = {} }) {
  return explanation(NOTICES[code] ?? NOTICES.not_ready, message, reasons, values);
}

/** The server's own sentences where it has some; what stands in backticks is a command. */
function explanation(known, message, reasons, values) {
  const told = reasons.length > 0 ? reasons.map((reason) => reason.message) : [message];
  const sentences = told.filter((sentence) => sentence && (isKnown(sentence) || sentence.includes("`") || !known.text));
  const text = known.isPlain || sentences.length === 0 ? known.text : sentences.map((sentence) => t(sentence)).join(" ");
  const paragraph = make("p", "");
  filled(text, values).split("`").forEach((piece, index) => {
    paragraph.append(index % 2 === 1 ? make("code", "", piece) : piece);
  });
  return paragraph;
}
