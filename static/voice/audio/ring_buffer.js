// A queue of float samples in one reused array. Imports no Web Audio, so that bare JavaScript tests it.

export class RingBuffer {
  #samples;
  #read = 0;
  #length = 0;
  #kept = 0; // samples that were pulled and not overwritten yet

  /** `capacity` samples to begin with; it doubles when more are pushed. */
  constructor(capacity = 4096) {
    this.#samples = new Float32Array(capacity);
  }

  get length() {
    return this.#length;
  }

  /** Append samples. */
  push(samples) {
    if (this.#length + samples.length > this.#samples.length) {
      this.#grow(this.#length + samples.length);
    }
    const start = (this.#read + this.#length) % this.#samples.length;
    const head = Math.min(samples.length, this.#samples.length - start);
    this.#samples.set(samples.subarray(0, head), start);
    this.#samples.set(samples.subarray(head), 0);
    this.#length += samples.length;
    this.#kept = Math.min(this.#kept, this.#samples.length - this.#length);
  }

  /** Move up to `target.length` samples into `target`; returns how many there were. */
  pull(target) {
    const count = Math.min(target.length, this.#length);
    const head = Math.min(count, this.#samples.length - this.#read);
    target.set(this.#samples.subarray(this.#read, this.#read + head), 0);
    target.set(this.#samples.subarray(0, count - head), head);
    this.#read = (this.#read + count) % this.#samples.length;
    this.#length -= count;
    this.#kept += count;
    return count;
  }

  /** Have up to `count` of the samples that were pulled last be pulled again; returns how many are still there. */
  putBack(count) {
    const back = Math.min(count, this.#kept);
    this.#read = (this.#read - back + this.#samples.length) % this.#samples.length;
    this.#length += back;
    this.#kept -= back;
    return back;
  }

  clear() {
    this.#read = 0;
    this.#length = 0;
    this.#kept = 0;
  }

  #grow(needed) {
    let capacity = this.#samples.length;
    while (capacity < needed) {
      capacity *= 2;
    }
    const samples = new Float32Array(capacity);
    const length = this.pull(samples);
    this.#samples = samples;
    this.#read = 0;
    this.#length = length;
    this.#kept = 0;
  }
}
