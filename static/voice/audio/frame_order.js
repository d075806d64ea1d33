// Numbered frames as they arrive to frames as they were sent. Pure, so that bare JavaScript tests it.

const PATIENCE_FRAMES = 3; // that many later ones wait for a missing one: 60 ms
const IDLE_MS = 60; // after so long without any, the next one begins anew: the sender was silent

export class FrameOrder {
  #next = null; // number of the frame to be given next
  #waiting = new Map();
  #arrivedAt = -Infinity;

  /** Take a frame that arrived at `now` (ms). Returns the frames that can be played now, in their order. */
  push(number, frame, now) {
    const isIdle = now - this.#arrivedAt > IDLE_MS && this.#waiting.size === 0;
    this.#arrivedAt = now;
    if (this.#next === null || (isIdle && number > this.#next)) {
      this.#next = number;
    }
    if (number < this.#next) {
      return []; // too late
    }
    this.#waiting.set(number, frame);
    if (this.#waiting.size >= PATIENCE_FRAMES) {
      this.#next = Math.min(...this.#waiting.keys()); // what is missing is lost
    }
    const ready = [];
    while (this.#waiting.has(this.#next)) {
      ready.push(this.#waiting.get(this.#next));
      this.#waiting.delete(this.#next);
      this.#next += 1;
    }
    return ready;
  }
}
