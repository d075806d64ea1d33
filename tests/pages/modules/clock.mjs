// Timers and dates that a test moves by hand. (Node's own mock removes a wrong timer when one that has fired is cleared.)

const REAL = { setTimeout, clearTimeout, Date };

export class Clock {
  nowMs = 1_700_000_000_000;
  #timers = new Map();
  #nextId = 1;

  constructor() {
    globalThis.setTimeout = (callback, delayMs = 0, ...rest) => {
      const id = this.#nextId;
      this.#nextId += 1;
      this.#timers.set(id, { at: this.nowMs + delayMs, run: () => callback(...rest) });
      return id;
    };
    globalThis.clearTimeout = (id) => this.#timers.delete(id);
    globalThis.Date = Object.assign(class extends REAL.Date {}, { now: () => this.nowMs });
  }

  /** Let so much time pass, in small steps, and everything happen that waits for it. */
  async pass(seconds, stepMs = 50) {
    for (const until = this.nowMs + seconds * 1000; this.nowMs < until; ) {
      await settle();
      this.nowMs += stepMs;
      for (const [id, timer] of [...this.#timers].sort(([, a], [, b]) => a.at - b.at)) {
        if (timer.at <= this.nowMs && this.#timers.delete(id)) {
          timer.run();
        }
      }
    }
    await settle();
  }

  restore() {
    Object.assign(globalThis, REAL);
  }
}

/** Let every promise that can be settled now settle. */
export async function settle() {
  for (let turns = 0; turns < 5; turns += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}
