// A conversation's words in the storage of its tab, so that they are still there when the page is loaded again.

import { Item } from "./item.js";
import { t } from "./words.js";

const STORAGE_KEY = "voiceapp.conversation";
const VERSION = 1;
const SAVE_AFTER_MS = 1000;
const GONE_ON_WITHIN_MS = 15 * 60 * 1000;
const LARGEST_CHARS = 500000; // of JSON; a tab may keep some millions
const LARGEST_TEXT = 20000; // characters of one item's text
const OVER = t("This conversation is over and can only be read. A new one begins below.");

export class KeptConversation {
  #storage;
  #conversation;
  #visitor;
  #isActive;
  #now;
  #usedAt = 0; // when something was said last, or the conversation was open
  #saving = null;
  #isForgotten = false;

  /**
   * `storage`: a Storage of this tab alone, which may refuse to keep anything; `visitor` tells one signed-in person from
   * another, and is empty for a guest; `isActive()`: whether the conversation is open.
   */
  constructor(storage, conversation, { visitor, isActive, now = Date.now }) {
    this.#storage = storage;
    this.#conversation = conversation;
    this.#visitor = visitor;
    this.#isActive = isActive;
    this.#now = now;
  }

  /**
   * Bring back what was said before the page was loaded again, and keep from now on what is said. Returns whether the
   * conversation was open, and can be gone on with.
   */
  restore() {
    const kept = this.#read();
    const isRecent = this.#now() - kept.usedAt <= GONE_ON_WITHIN_MS;
    this.#usedAt = kept.usedAt;
    const isOver = !isRecent && kept.items.some(({ isPast }) => !isPast);
    this.#conversation.restore(kept.items, { isOver });
    this.#conversation.reminders.restore(isOver ? [] : kept.reminders);
    if (isOver) {
      this.#conversation.addNote(OVER, { isPast: true });
    }
    for (const name of ["item", "removed"]) {
      this.#conversation.addEventListener(name, () => this.#changed());
    }
    this.#conversation.reminders.addEventListener("change", () => this.#changed());
    this.#conversation.addEventListener("cleared", () => this.#remove());
    window.addEventListener("pagehide", () => this.save());
    document.addEventListener("visibilitychange", () => this.save());
    return kept.wasActive && isRecent && kept.items.length > 0;
  }

  /** The person has signed out, or is another by now: nothing stays. */
  forget() {
    this.#isForgotten = true;
    this.#remove();
  }

  /** Whether the conversation may be seen by this visitor, whose it is from now on: a guest who signs in takes it along. */
  isOf(visitor) {
    const isTheirs = this.#visitor === "" || this.#visitor === visitor;
    this.#visitor = isTheirs ? visitor : this.#visitor;
    return isTheirs;
  }

  /** Write down what is known now. */
  save() {
    clearTimeout(this.#saving);
    this.#saving = null;
    const { items, reminders } = this.#conversation;
    if (this.#isForgotten || items.length === 0) {
      return;
    }
    if (this.#isActive()) {
      this.#usedAt = this.#now();
    }
    const records = latest(items, this.#now());
    const about = { visitor: this.#visitor, usedAt: this.#usedAt, wasActive: this.#isActive() };
    const head = { version: VERSION, ...about, reminders: reminders.pending };
    try {
      this.#storage.setItem(STORAGE_KEY, `${JSON.stringify(head).slice(0, -1)},"items":[${records.join(",")}]}`);
    } catch {
      this.#remove(); // storage is full or forbidden: better nothing than an older state
    }
  }

  #changed() {
    this.#usedAt = this.#now();
    this.#saving ??= setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  #remove() {
    clearTimeout(this.#saving);
    this.#saving = null;
    try {
      this.#storage.removeItem(STORAGE_KEY);
    } catch {
      // Storage is forbidden: nothing was kept.
    }
  }

  #read() {
    const nothing = { items: [], reminders: [], usedAt: 0, wasActive: false };
    try {
      const kept = JSON.parse(this.#storage.getItem(STORAGE_KEY) ?? "{}");
      if (kept.version !== VERSION || !Array.isArray(kept.items)) {
        return nothing;
      }
      if (kept.visitor !== "" && kept.visitor !== this.#visitor) {
        this.#remove();
        return nothing;
      }
      const items = kept.items.map((record) => Item.fromRecord(record)).filter(Boolean);
      return { items, reminders: kept.reminders, usedAt: Number(kept.usedAt) || 0, wasActive: kept.wasActive === true };
    } catch {
      return nothing;
    }
  }
}

/** As many of the latest items as there is room for, as JSON, in order. */
function latest(items, now) {
  const records = [];
  let size = 0;
  for (const item of items.toReversed()) {
    const record = JSON.stringify(item.toRecord(now, LARGEST_TEXT));
    size += record.length;
    if (size > LARGEST_CHARS) {
      break;
    }
    records.unshift(record);
  }
  return records;
}
