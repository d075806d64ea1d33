// Runs in the audio thread: microphone at the device's rate in, 32 ms frames of 16 kHz out.

import { Resampler } from "./resampler.js";
import { RingBuffer } from "./ring_buffer.js";
import { int16FromFloat } from "./pcm.js";

class CaptureProcessor extends AudioWorkletProcessor {
  #resampler;
  #buffer = new RingBuffer(2048);
  #frame;
  #isOpen = true;

  constructor({ processorOptions }) {
    super();
    this.#resampler = new Resampler(sampleRate, processorOptions.sampleRateHz);
    this.#frame = new Float32Array(processorOptions.frameSamples);
    this.port.onmessage = () => {
      this.#isOpen = false;
    };
  }

  process([input]) {
    if (input.length > 0) {
      this.#buffer.push(this.#resampler.process(input[0]));
    }
    while (this.#buffer.length >= this.#frame.length) {
      this.#buffer.pull(this.#frame);
      const pcm = int16FromFloat(this.#frame);
      this.port.postMessage({ pcm, at: currentTime }, [pcm.buffer]);
    }
    return this.#isOpen;
  }
}

registerProcessor("capture", CaptureProcessor);
