// What is played when: a jitter buffer that knows to the sample how much of every item was heard.
// Imports no Web Audio, so that bare JavaScript tests it; the playback worklet is a thin shell around it.

import { RingBuffer } from "./ring_buffer.js";

const FIRST_TARGET_MS = 60;
const LARGEST_TARGET_MS = 240;
const UNDERRUN_STEP_MS = 40;
const RECOVERY_STEP_MS = 10;
const RING_S = 8; // what may come while a reply waits, and what it goes back to then
const FADE_MS = 10;
const REMEMBERED_FLUSHES = 64;

/** One item's place on the line of samples: [start, start + length). */
class Segment {
  constructor(itemId, start) {
    this.itemId = itemId;
    this.start = start;
    this.length = 0;
    this.isComplete = false;
    this.hasStarted = false;
  }
}

export class PlayoutQueue {
  #rateHz;
  #ring;
  #segments = [];
  #pushed = 0;
  #played = 0;
  #targetMs = FIRST_TARGET_MS;
  #isBuffering = true;
  #fadeLeft = 0;
  #flushed = new Set();
  #isHeld = false;

  constructor(rateHz) {
    this.#rateHz = rateHz;
    this.#ring = new RingBuffer(rateHz * RING_S);
  }

  /** How much must be queued before a sound starts, in ms; grows after an underrun, shrinks after a clean item. */
  get targetMs() {
    return this.#targetMs;
  }

  get queuedMs() {
    return this.#ms(this.#ring.length);
  }

  /** Append samples of an item; those of a flushed item arrive too late and are dropped. */
  push(itemId, samples) {
    if (this.#flushed.has(itemId)) {
      return;
    }
    if (this.#fadeLeft > 0) {
      this.#drop();
    }
    let segment = this.#segments.at(-1);
    if (segment?.itemId !== itemId) {
      segment = new Segment(itemId, this.#pushed);
      this.#segments.push(segment);
    }
    segment.length += samples.length;
    this.#pushed += samples.length;
    this.#ring.push(samples);
  }

  /** Nothing more will come for this item: play the rest without waiting for more. */
  end(itemId) {
    const segment = this.#segments.find((candidate) => candidate.itemId === itemId);
    if (segment) {
      segment.isComplete = true;
    }
  }

  /**
   * Stop at once, with a fade of 10 ms against the click.
   * Returns what was cut, [{itemId, playedMs}], the item being heard first.
   */
  flush() {
    const cut = this.#segments.map((segment) => ({
      itemId: segment.itemId,
      playedMs: this.#ms(Math.max(0, this.#played - segment.start)),
    }));
    for (const { itemId } of cut) {
      this.#flushed.add(itemId);
    }
    for (const itemId of [...this.#flushed].slice(0, -REMEMBERED_FLUSHES)) {
      this.#flushed.delete(itemId);
    }
    if (this.#isBuffering || this.#isHeld || this.#ring.length === 0) {
      this.#drop();
    } else if (this.#fadeLeft === 0) {
      this.#fadeLeft = Math.round((this.#rateHz * FADE_MS) / 1000);
    }
    this.#segments = [];
    return cut;
  }

  /** Wait and forget nothing, or go on. */
  hold(isOn) {
    this.#isHeld = isOn;
  }

  /** Play an item that is being heard again from `playedMs` on, as far as that is kept. */
  goBack(itemId, playedMs) {
    const segment = this.#segments.find((candidate) => candidate.itemId === itemId);
    if (segment?.hasStarted) {
      const place = segment.start + Math.round((Math.max(0, playedMs) * this.#rateHz) / 1000);
      this.#played -= this.#ring.putBack(Math.max(0, this.#played - place));
    }
  }

  /** More will come of an item that was flushed. */
  goOn(itemId) {
    this.#flushed.delete(itemId);
  }

  /**
   * Fill `output` with the next samples, or silence. Returns what happened on the way:
   * [{kind: "started" | "ended" | "underrun", itemId}].
   */
  pull(output) {
    output.fill(0);
    if (this.#fadeLeft > 0) {
      this.#fade(output);
      return [];
    }
    if (this.#isHeld) {
      return [];
    }
    if (this.#isBuffering && !this.#isReady()) {
      return this.#passed(); // the word that an item is complete may come after its last sample was played
    }
    this.#isBuffering = false;
    const count = this.#ring.pull(output);
    this.#played += count;
    const happened = this.#passed();
    if (count < output.length) {
      happened.push(...this.#ranDry());
    }
    return happened;
  }

  /** The item being heard and how much of it: {itemId, playedMs}, or null. */
  position() {
    const segment = this.#segments.find((candidate) => candidate.hasStarted);
    return segment ? { itemId: segment.itemId, playedMs: this.#ms(this.#played - segment.start) } : null;
  }

  #isReady() {
    const isWhole = this.#segments.every((segment) => segment.isComplete);
    return this.#ring.length > 0 && (isWhole || this.queuedMs >= this.#targetMs);
  }

  /** Segments whose first or last sample has just been played. */
  #passed() {
    const happened = [];
    for (const segment of [...this.#segments]) {
      if (!segment.hasStarted && this.#played > segment.start) {
        segment.hasStarted = true;
        happened.push({ kind: "started", itemId: segment.itemId });
      }
      const isPast = this.#played >= segment.start + segment.length;
      if (isPast && (segment.isComplete || segment !== this.#segments.at(-1))) {
        this.#segments.splice(this.#segments.indexOf(segment), 1);
        happened.push({ kind: "ended", itemId: segment.itemId });
      }
    }
    return happened;
  }

  #ranDry() {
    this.#isBuffering = true;
    const segment = this.#segments.at(-1);
    if (segment && !segment.isComplete) {
      this.#targetMs = Math.min(LARGEST_TARGET_MS, this.#targetMs + UNDERRUN_STEP_MS);
      return [{ kind: "underrun", itemId: segment.itemId }];
    }
    this.#targetMs = Math.max(FIRST_TARGET_MS, this.#targetMs - RECOVERY_STEP_MS);
    return [];
  }

  #fade(output) {
    const fadeLength = Math.round((this.#rateHz * FADE_MS) / 1000);
    const count = Math.min(this.#ring.pull(output), this.#fadeLeft);
    for (let index = 0; index < count; index += 1) {
      output[index] *= (this.#fadeLeft - index) / fadeLength;
    }
    output.fill(0, count);
    this.#fadeLeft -= count;
    if (this.#fadeLeft <= 0 || count < output.length) {
      this.#drop();
    }
  }

  #drop() {
    this.#ring.clear();
    this.#played = this.#pushed;
    this.#fadeLeft = 0;
    this.#isBuffering = true;
    this.#isHeld = false;
  }

  #ms(samples) {
    return Math.round((samples * 1000) / this.#rateHz);
  }
}
