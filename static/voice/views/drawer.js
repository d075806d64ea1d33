// The event drawer: what went over the wire, newest last, at most 500 rows; a run of audio is one row.

import { byId, download, make } from "./dom.js";
import { CLIENT, SERVER } from "../events.js";
import { t } from "../words.js";

const LONGEST = 500;
const TO_THE_MILLISECOND = /** @type {Intl.DateTimeFormatOptions} */ ({
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});
const AUDIO_TYPES = new Set([CLIENT.AUDIO_APPEND, SERVER.AUDIO_DELTA]);

export class Drawer {
  #list = byId("events");
  #count = byId("drawer-count");
  #total = 0;
  #isAtEnd = true;
  #events = new WeakMap(); // row → {at, direction, event, count}
  #run = new Map(); // direction and type of audio → its open row

  constructor() {
    byId("clear-events").addEventListener("click", () => this.#clear());
    byId("filter-events", HTMLInputElement).addEventListener("input", () => this.#filter());
    byId("save-events").addEventListener("click", () => {
      const lines = [...this.#list.children].map((row) => JSON.stringify(this.#events.get(row), shortened));
      download("events.jsonl", "application/jsonl", lines.join("\n"));
    });
    new ResizeObserver(() => this.#keepEnd()).observe(this.#list); // it opens at its end
  }

  add({ direction, event }) {
    this.#total += 1;
    const isAudio = AUDIO_TYPES.has(event.type);
    const open = isAudio ? this.#run.get(event.type) : null;
    if (open?.isConnected) {
      this.#again(open);
    } else {
      this.#append(direction, event, isAudio);
    }
    this.#count.textContent = t("{total} so far", { total: this.#total });
  }

  #append(direction, event, isAudio) {
    this.#noteEnd();
    const row = this.#row(direction, event);
    this.#events.set(row, { at: new Date().toISOString(), direction, event, count: 1 });
    row.hidden = !this.#isWanted(row);
    this.#list.append(row);
    if (isAudio) {
      this.#run.set(event.type, row);
    } else if (direction === "in") {
      this.#run.clear(); // what is said next belongs to the next step of the conversation
    }
    while (this.#list.childElementCount > LONGEST) {
      this.#list.firstElementChild.remove();
    }
    this.#keepEnd();
  }

  /** A list that is not shown has no end to be read from. */
  #noteEnd() {
    if (this.#list.clientHeight > 0) {
      this.#isAtEnd = this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < 60;
    }
  }

  #keepEnd() {
    if (this.#isAtEnd) {
      this.#list.scrollTop = this.#list.scrollHeight;
    }
  }

  #isWanted(row) {
    return row.dataset.type.includes(byId("filter-events", HTMLInputElement).value.trim().toLowerCase());
  }

  #filter() {
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (this.#list.querySelectorAll(".event"))) {
      row.hidden = !this.#isWanted(row);
    }
    this.#keepEnd();
  }

  #row(direction, event) {
    const row = make("li", "event");
    row.dataset.direction = direction;
    row.dataset.type = event.type;
    const details = make("details", "");
    const arrow = make("span", "event-arrow", direction === "out" ? "↑" : "↓");
    arrow.setAttribute("aria-label", direction === "out" ? t("sent") : t("received"));
    arrow.setAttribute("role", "img");
    const time = new Date().toLocaleTimeString("en-GB", TO_THE_MILLISECOND);
    details.append(
      make("summary", "", arrow, make("span", "event-type", ...breakable(event.type)), make("span", "event-count"), make("span", "event-time", time)),
    );
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) {
        details.append(make("pre", "", JSON.stringify(event, shortened, 2)));
      }
    });
    row.append(details);
    return row;
  }

  #again(row) {
    const kept = this.#events.get(row);
    kept.count += 1;
    const { count } = kept;
    row.querySelector(".event-count").textContent = `× ${count}`;
  }

  #clear() {
    this.#list.replaceChildren();
    this.#run.clear();
    this.#total = 0;
    this.#count.textContent = t("none yet");
  }
}

/** A name that breaks between its words, and not inside them. */
function breakable(name) {
  return name.split(/(?<=[._])/).flatMap((word, index) => (index > 0 ? [make("wbr", ""), word] : [word]));
}

/** Base64 is not for reading. */
function shortened(key, value) {
  return (key === "audio" || key === "delta") && typeof value === "string" && value.length > 400
    ? `${value.slice(0, 40)}… (${value.length} characters)`
    : value;
}
