// The timers and reminders that are set, each with the time that is left.

import { byId, make } from "./dom.js";
import { t } from "../words.js";

const MOST_SHOWN = 3;

export class ReminderList {
  #list = byId("reminders");
  #reminders;
  #ticking = null; // a timer, while any is set

  constructor(reminders) {
    this.#reminders = reminders;
    reminders.addEventListener("change", () => this.#show());
    this.#show();
  }

  #show() {
    const { pending } = this.#reminders;
    const more = pending.length - MOST_SHOWN;
    this.#list.replaceChildren(
      ...pending.slice(0, MOST_SHOWN).map(({ name, dueAt }) =>
        make("li", "reminder", make("span", "reminder-name", name.replace(/^the /, "")), make("time", "", left(dueAt))),
      ),
      ...(more > 0 ? [make("li", "reminder", t("and {more} more", { more }))] : []),
    );
    this.#list.hidden = pending.length === 0;
    if (pending.length === 0) {
      clearInterval(this.#ticking);
      this.#ticking = null;
    } else {
      this.#ticking ??= setInterval(() => this.#tick(), 1000);
    }
  }

  #tick() {
    for (const [place, time] of this.#list.querySelectorAll("time").entries()) {
      time.textContent = left(this.#reminders.pending[place].dueAt);
    }
  }
}

/** "4:05", "1:00:00". */
function left(dueAt, now = Date.now()) {
  const seconds = Math.max(0, Math.round((dueAt - now) / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const parts = hours > 0 ? [hours, String(minutes).padStart(2, "0")] : [minutes];
  return [...parts, String(seconds % 60).padStart(2, "0")].join(":");
}
