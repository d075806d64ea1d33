// Runs in the audio thread: pieces of speech in, sound out, and word of what was heard.

import { PlayoutQueue } from "./playout_queue.js";
import { Resampler } from "./resampler.js";
import { floatFromInt16 } from "./pcm.js";

const POSITION_EVERY_S = 0.05;

class PlaybackProcessor extends AudioWorkletProcessor {
  #queue = new PlayoutQueue(sampleRate);
  #resampler = null;
  #resampledItem = null;
  #sourceRateHz = 0;
  #nextPositionAt = 0;
  #isRecording = false;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#receive(data);
  }

  process(_inputs, [output]) {
    for (const event of this.#queue.pull(output[0])) {
      this.port.postMessage({ ...event, at: currentTime });
    }
    for (const channel of output.slice(1)) {
      channel.set(output[0]);
    }
    if (this.#isRecording && output[0].some((sample) => sample !== 0)) {
      const samples = output[0].slice();
      this.port.postMessage({ kind: "rendered", samples, at: currentTime }, [samples.buffer]);
    }
    if (currentTime >= this.#nextPositionAt) {
      this.#nextPositionAt = currentTime + POSITION_EVERY_S;
      const position = this.#queue.position();
      if (position) {
        this.port.postMessage({ kind: "position", ...position });
      }
    }
    return true;
  }

  #receive(message) {
    if (message.kind === "push") {
      this.#push(message);
    } else if (message.kind === "end") {
      this.#finish(message.itemId);
      this.#queue.end(message.itemId);
    } else if (message.kind === "flush") {
      this.#resampledItem = null;
      this.port.postMessage({ kind: "flushed", ticket: message.ticket, cut: this.#queue.flush() });
    } else if (message.kind === "record") {
      this.#isRecording = message.isOn;
    }
  }

  #push({ itemId, pcm, sampleRateHz }) {
    if (sampleRateHz !== this.#sourceRateHz) {
      this.#sourceRateHz = sampleRateHz;
      this.#resampler = new Resampler(sampleRateHz, sampleRate);
    }
    if (itemId !== this.#resampledItem) {
      this.#finish(this.#resampledItem);
      this.#resampler.reset();
      this.#resampledItem = itemId;
    }
    this.#queue.push(itemId, this.#resampler.process(floatFromInt16(pcm)));
  }

  /** The resampler still holds the last millisecond of an item. */
  #finish(itemId) {
    if (itemId !== null && itemId === this.#resampledItem) {
      this.#queue.push(itemId, this.#resampler.finish());
      this.#resampledItem = null;
    }
  }
}

registerProcessor("playback", PlaybackProcessor);
