// Whether a person speaks into the microphone, by loudness alone: for when the server is not there to tell.
// Pure, so that bare JavaScript tests it.

import { floatFromInt16, loudness } from "./audio/pcm.js";

const QUIETEST_SPEECH = 0.012; // -38 dB
const ABOVE_NOISE = 4; // 12 dB
const FLOOR_RISE = 1.01; // a frame
const WINDOW_FRAMES = 20; // of 32 ms
const LOUD_FRAMES = 10; // a door that slams is over sooner
const UNEVENNESS = 1.5; // between the loudest and the quietest of them: a fan is even

export class SpeechMeter {
  #floor = Infinity;
  #recent = []; // levels of the last frames; 0 where a frame is not louder than the background noise
  #isSpeech = false;

  /** Take one frame; returns whether speech begins with it. */
  hear(pcm) {
    const level = loudness(floatFromInt16(pcm));
    const isLoud = level > Math.max(QUIETEST_SPEECH, this.#floor * ABOVE_NOISE);
    this.#floor = Math.min(Math.max(level, 1e-4), this.#floor * FLOOR_RISE);
    this.#recent = [...this.#recent, isLoud ? level : 0].slice(-WINDOW_FRAMES);
    const loud = this.#recent.filter((each) => each > 0).sort((a, b) => a - b);
    const isUneven = loud.at(-2) > UNEVENNESS * loud[1]; // the frame in which a noise begins does not count
    const hasBegun = !this.#isSpeech && loud.length >= LOUD_FRAMES && isUneven;
    this.#isSpeech = hasBegun || (this.#isSpeech && loud.length > 0);
    return hasBegun;
  }
}
