// A tone, and how loudly the microphone hears it. Imports no Web Audio, so that bare JavaScript tests it.

import { FRAME_SAMPLES, SAMPLE_RATE_HZ } from "../audio/capture.js";
import { floatFromInt16, loudness } from "../audio/pcm.js";

export const TONE_RATE_HZ = 48000;
const TONE_HZ = 1500; // a whole number of periods in a frame of the microphone
const BEEPS = 3; // a steady tone would be taken for noise and suppressed
const BEEP_S = 0.3;
const PAUSE_S = 0.2;
const AMPLITUDE = 0.25;
const PLAYED_DB = decibels(AMPLITUDE / Math.SQRT2);
const QUIETEST_DB = -65;
const ABOVE_NOISE_DB = 10;
const BELOW_ALL_DB = 6; // speech has less of itself at one frequency

/** Decibels of an amplitude; full scale is 0. */
export function decibels(amplitude) {
  return 20 * Math.log10(Math.max(amplitude, 1e-6));
}

/** Int16 samples of the tone. */
export function tone() {
  const beat = (BEEP_S + PAUSE_S) * TONE_RATE_HZ;
  return Int16Array.from({ length: BEEPS * beat }, (_, index) =>
    index % beat < BEEP_S * TONE_RATE_HZ ? 32767 * AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * index) / TONE_RATE_HZ) : 0,
  );
}

/**
 * How much quieter than it was played the microphone heard the tone, in dB at most 0 as a rule, or null where it did not.
 * `before` and `during`: frames of the microphone.
 */
export function echoDb(before, during) {
  const tones = during.filter((frame) => toneLevelDb(frame) > decibels(loudness(floatFromInt16(frame))) - BELOW_ALL_DB);
  const heard = tones.map(toneLevelDb).sort((first, second) => second - first)[1] ?? -Infinity; // the loudest may be a click
  const isHeard = heard > Math.max(QUIETEST_DB, ...before.map((frame) => toneLevelDb(frame) + ABOVE_NOISE_DB));
  return isHeard ? Math.round(heard - PLAYED_DB) : null;
}

/** Level of the tone's frequency in a frame, by the algorithm of Goertzel. */
function toneLevelDb(frame) {
  const turn = 2 * Math.cos((2 * Math.PI * TONE_HZ) / SAMPLE_RATE_HZ);
  let [last, before] = [0, 0];
  for (const sample of frame) {
    [last, before] = [sample / 32768 + turn * last - before, last];
  }
  const power = last * last + before * before - turn * last * before;
  return decibels(Math.SQRT2 * (Math.sqrt(Math.max(0, power)) / FRAME_SAMPLES));
}
