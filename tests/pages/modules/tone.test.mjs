import assert from "node:assert/strict";
import { test } from "node:test";
import { TONE_RATE_HZ, echoDb, tone } from "../../../static/voice/check/tone.js";

const FRAME = 512;
const STEP = TONE_RATE_HZ / 16000;

/** Frames of a microphone that hears the tone so many dB quieter, and `noise(index)` with it. */
function heard(echo, noise = () => 0) {
  const gain = 10 ** (echo / 20);
  const played = tone();
  const pcm = Int16Array.from({ length: played.length / STEP }, (_, index) => gain * played[index * STEP] + noise(index));
  return Array.from({ length: Math.floor(pcm.length / FRAME) }, (_, place) => pcm.subarray(place * FRAME, (place + 1) * FRAME));
}

const silence = heard(-Infinity);
const vowel = (index) => [200, 400, 600, 1500, 2400].reduce((sum, hz) => sum + 2500 * Math.sin((2 * Math.PI * hz * index) / 16000), 0);
const hum = (index) => 3000 * Math.sin(index / 20);

test("the echo is measured as it comes back, in silence and in a hum", () => {
  assert.deepEqual([-3, -12, -40].map((echo) => echoDb(silence, heard(echo))), [-3, -12, -40]);
  assert.equal(echoDb(heard(-Infinity, hum), heard(-12, hum)), -12);
});

test("a tone that does not come back, one that is there all the time, speech and a click are no echo", () => {
  const clicked = silence.map((frame, place) => (place === 9 ? heard(0)[2] : frame));
  const heardBefore = [[silence, silence], [silence, heard(-70)], [heard(-12), heard(-12)], [silence, clicked], [silence, heard(-Infinity, vowel)], [silence, []]];
  assert.deepEqual(heardBefore.map(([before, during]) => echoDb(before, during)), heardBefore.map(() => null));
});
