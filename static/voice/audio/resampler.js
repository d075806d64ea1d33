// Sample rate conversion between any two rates, as a stream. Imports no Web Audio, so that bare JavaScript tests it.
//
// A polyphase windowed sinc: one row of weights per position that an output sample can have between two input samples.
// Going down (48 to 16 kHz) its cut-off lies under half the output rate, so nothing folds back as false tones; going up
// it suppresses the images. Stop band about -80 dB (Kaiser window, beta 8).

const ZERO_CROSSINGS = 24;
const KAISER_BETA = 8;
const PASS_BAND = 0.92;
const MAX_PHASES = 1024;

function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Modified Bessel function of the first kind, order 0, by its series. */
function bessel0(x) {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function weightRows(phases, halfWidth, cutoff) {
  const rows = [];
  for (let phase = 0; phase < phases; phase += 1) {
    const row = new Float32Array(2 * halfWidth);
    let sum = 0;
    for (let tap = 0; tap < row.length; tap += 1) {
      const distance = tap - (halfWidth - 1) - phase / phases;
      const x = Math.PI * distance * cutoff;
      const edge = distance / halfWidth;
      const window = bessel0(KAISER_BETA * Math.sqrt(Math.max(0, 1 - edge * edge))) / bessel0(KAISER_BETA);
      row[tap] = (x === 0 ? 1 : Math.sin(x) / x) * window;
      sum += row[tap];
    }
    for (let tap = 0; tap < row.length; tap += 1) {
      row[tap] /= sum;
    }
    rows.push(row);
  }
  return rows;
}

export class Resampler {
  #rows;
  #steps;
  #step;
  #phase = 0;
  #halfWidth;
  #history;
  #position = 0;

  constructor(inputRateHz, outputRateHz) {
    const divisor = greatestCommonDivisor(inputRateHz, outputRateHz);
    this.#steps = outputRateHz / divisor;
    this.#step = inputRateHz / divisor;
    const narrowing = Math.min(1, outputRateHz / inputRateHz);
    this.#halfWidth = Math.ceil(ZERO_CROSSINGS / narrowing);
    this.isIdentity = inputRateHz === outputRateHz;
    this.#rows = this.isIdentity
      ? []
      : weightRows(Math.min(this.#steps, MAX_PHASES), this.#halfWidth, narrowing * PASS_BAND);
    this.reset();
  }

  /** Delay in input samples: this much of the future one output sample looks at. */
  get delay() {
    return this.isIdentity ? 0 : this.#halfWidth;
  }

  /** Forget what came before; the next sample is the first of something new. */
  reset() {
    this.#history = new Float32Array(this.#halfWidth - 1);
    this.#position = 0;
    this.#phase = 0;
  }

  /** The output samples that can be computed now that `input` has arrived. */
  process(input) {
    if (this.isIdentity) {
      return Float32Array.from(input);
    }
    const samples = new Float32Array(this.#history.length + input.length);
    samples.set(this.#history);
    samples.set(input, this.#history.length);
    const width = 2 * this.#halfWidth;
    const output = [];
    while (this.#position + width <= samples.length) {
      const row = this.#rows[Math.floor((this.#phase * this.#rows.length) / this.#steps)];
      let sum = 0;
      for (let tap = 0; tap < width; tap += 1) {
        sum += samples[this.#position + tap] * row[tap];
      }
      output.push(sum);
      this.#phase += this.#step;
      this.#position += Math.floor(this.#phase / this.#steps);
      this.#phase %= this.#steps;
    }
    const consumed = Math.min(this.#position, samples.length);
    this.#history = samples.slice(consumed);
    this.#position -= consumed;
    return Float32Array.from(output);
  }

  /** What is still inside at the end of a sound; afterwards the resampler is as new. */
  finish() {
    const tail = this.process(new Float32Array(this.delay));
    this.reset();
    return tail;
  }
}
