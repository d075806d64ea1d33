// The event drawer: what went over the wire, newest last, at most 500 rows; a run of audio is one row.

import { byId, make } from "./dom.js";
import { CLIENT, SERVER } from "../events.js";

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
  #run = new Map(); // direction and type of audio → its open row

  constructor() {
    byId("clear-events").addEventListener("click", () => this.#clear());
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
    this.#count.textContent = `${this.#total} so far`;
  }

  #append(direction, event, isAudio) {
    const isAtEnd = this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < 60;
    const row = this.#row(direction, event);
    this.#list.append(row);
    if (isAudio) {
      this.#run.set(event.type, row);
    } else if (direction === "in") {
      this.#run.clear(); // what is said next belongs to the next step of the conversation
    }
    while (this.#list.childElementCount > LONGEST) {
      this.#list.firstElementChild.remove();
    }
    if (isAtEnd) {
      this.#list.scrollTop = this.#list.scrollHeight;
    }
  }

  #row(direction, event) {
    const row = make("li", "event");
    row.dataset.direction = direction;
    row.dataset.type = event.type;
    const details = make("details", "");
    const arrow = make("span", "event-arrow", direction === "out" ? "↑" : "↓");
    arrow.setAttribute("aria-label", direction === "out" ? "sent" : "received");
    arrow.setAttribute("role", "img");
    const time = new Date().toLocaleTimeString("en-GB", TO_THE_MILLISECOND);
    details.append(
      make("summary", "", arrow, make("span", "event-type", event.type), make("span", "event-count"), make("span", "event-time", time)),
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
    const count = Number(row.dataset.count ?? 1) + 1;
    row.dataset.count = String(count);
    row.querySelector(".event-count").textContent = `× ${count}`;
  }

  #clear() {
    this.#list.replaceChildren();
    this.#run.clear();
    this.#total = 0;
    this.#count.textContent = "none yet";
  }
}

/** Base64 is not for reading. */
function shortened(key, value) {
  return (key === "audio" || key === "delta") && typeof value === "string" && value.length > 400
    ? `${value.slice(0, 40)}… (${value.length} characters)`
    : value;
}
