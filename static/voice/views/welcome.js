// What stands in the place of the captions while nothing has been said: what to do now, or what is being waited for.

import { byId } from "./dom.js";
import { t } from "../words.js";

const SPEAK = t("Say something.");
const WORDS = {
  idle: [SPEAK, t("Press the circle, allow the microphone, and speak as you would to a person. Interrupt whenever you like.")],
  connecting: [t("One moment."), ""],
  queued: [
    t("All lines are busy."),
    t("Too many conversations are open at the moment. This page tries again by itself until there is room for yours."),
  ],
  "your-turn": [t("It is your turn."), t("Press the circle to begin. Your place is kept for a short while.")],
  listening: [SPEAK, ""],
  holding: [t("Hold and speak."), t("Hold the circle or the space bar while you speak, and let go when you are done.")],
  typing: [t("Type a message."), t("Or press the circle, allow the microphone, and speak.")],
  muted: [t("You are muted."), t("The assistant does not hear you. Press “Unmute”, hold the circle or the space bar while you speak, or type a message.")],
};

export class Welcome {
  #title = byId("welcome-title");
  #text = byId("welcome-text");

  /** `situation` is a state of the conversation, or holding, typing or muted: how the person would speak now. */
  show(situation) {
    const [title, text] = WORDS[situation] ?? ["", ""];
    this.#title.textContent = title;
    this.#text.textContent = text;
    this.#title.hidden = !title;
    this.#text.hidden = !text;
  }
}
