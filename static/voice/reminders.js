// The timers and reminders that are set. A session takes them to its grave, so the page brings them to the next one.

const LATE_MS = 15 * 60 * 1000; // reminders that were due longer ago are not announced

/** Event: `change`. */
export class Reminders extends EventTarget {
  #pending = [];

  /** Those that are set, the next one first: [{id, name, text, dueAt, askedIn}], `dueAt` in epoch ms. */
  get pending() {
    return this.#pending;
  }

  /** What the server says is set; `question`: id of what the person said last, which set those that are new. */
  update(reminders, question, now = Date.now()) {
    const known = new Map(this.#pending.map((reminder) => [reminder.id, reminder.askedIn]));
    this.#set(
      reminders.map(({ id, name, text, due_in_ms: inMs }) => ({
        id,
        name,
        text,
        dueAt: now + inMs,
        askedIn: known.get(id) ?? question,
      })),
    );
  }

  /** Those of before, as `pending` had them; what is none is left out. */
  restore(records) {
    this.#set(
      (Array.isArray(records) ? records : []).filter(
        ({ id, name, text, dueAt, askedIn }) =>
          [id, name, text, askedIn].every((words) => typeof words === "string") && Number.isFinite(dueAt),
      ),
    );
  }

  /** The person has ended the session: what was being said is not said again. */
  dropDue(now = Date.now()) {
    this.#drop(({ dueAt }) => dueAt <= now);
  }

  /**
   * A session begins in which the conversation goes on, after a reply that was cut off, if any ({heard, unheard}), and
   * with `last` as its last message. Returns what it is told to take up, {reminders, isSaidAnew}: `isSaidAnew` when the
   * reply that was cut off is one of them.
   */
  resume(cutOff, last, now = Date.now()) {
    const [heard, whole] = cutOff ? [cutOff.heard, cutOff.heard + cutOff.unheard] : ["", ""];
    const isAskedAnew = ({ askedIn }) => last?.role === "user" && askedIn === last.id; // its reply sets it again
    this.#drop((each) => isAskedAnew(each) || heard.includes(each.text) || now - each.dueAt > LATE_MS);
    const reminders = this.#pending.map(({ id, name, text, dueAt }) => ({
      id,
      name,
      text,
      due_in_ms: Math.max(0, Math.round(dueAt - now)),
    }));
    return { reminders, isSaidAnew: reminders.some(({ text }) => whole.includes(text)) };
  }

  #drop(isOver) {
    if (this.#pending.some(isOver)) {
      this.#set(this.#pending.filter((reminder) => !isOver(reminder)));
    }
  }

  #set(reminders) {
    this.#pending = reminders;
    this.dispatchEvent(new Event("change"));
  }
}
