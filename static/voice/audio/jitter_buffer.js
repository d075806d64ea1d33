// Decoded sound on its way to the loudspeaker: a little of it waits, so that late frames leave no gaps. Pure.

import { RingBuffer } from "./ring_buffer.js";

const LEAST_MS = 40;
const MOST_MS = 200;
const STEP_MS = 20;
const AUDIBLE = 0.002;

export class JitterBuffer {
  #samples = new RingBuffer(16384);
  #rateHz;
  #targetMs = LEAST_MS;
  #isPlaying = false;
  #endsAudibly = false;

  constructor(rateHz) {
    this.#rateHz = rateHz;
  }

  /** How long a sample waits here, in ms. */
  get delayMs() {
    return this.#targetMs;
  }

  push(samples) {
    this.#samples.push(samples);
    this.#endsAudibly = samples.some((sample) => Math.abs(sample) > AUDIBLE);
  }

  /** Fill `target`, with silence where nothing is there. */
  pull(target) {
    target.fill(0);
    const waitingMs = (this.#samples.length * 1000) / this.#rateHz;
    this.#isPlaying ||= waitingMs >= this.#targetMs;
    if (!this.#isPlaying || this.#samples.pull(target) === target.length) {
      return;
    }
    this.#isPlaying = false; // ran dry: between replies, as it should, and within one because frames are late
    this.#targetMs = this.#endsAudibly
      ? Math.min(MOST_MS, this.#targetMs + STEP_MS)
      : Math.max(LEAST_MS, this.#targetMs - STEP_MS);
  }

  clear() {
    this.#samples.clear();
    this.#isPlaying = false;
  }
}
