import assert from "node:assert/strict";
import { test } from "node:test";
import { SpeechMeter } from "../../../static/voice/speech_meter.js";

const FRAME = 512;
const RATE_HZ = 16000;

/** Where speech is found in a sound, in seconds; `amplitude(t)` is the loudness at a time, the same noise under it. */
function found(amplitude, seconds = 10) {
  let seed = 1;
  const noise = () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 1073741824 - 1;
  };
  const meter = new SpeechMeter();
  const places = [];
  for (let start = 0; start < seconds * RATE_HZ; start += FRAME) {
    const pcm = Int16Array.from({ length: FRAME }, (_, index) => {
      return Math.max(-1, Math.min(1, noise() * amplitude((start + index) / RATE_HZ))) * 32767;
    });
    if (meter.hear(pcm)) {
      places.push(start / RATE_HZ);
    }
  }
  return places;
}

const ROOM = 0.002;
const syllables = (t) => 0.1 * Math.abs(Math.sin(2 * Math.PI * 2.5 * t)) ** 2; // five a second

test("speech is noticed within a second, and once", () => {
  const places = found((t) => (t > 3 && t < 6 ? ROOM + syllables(t) : ROOM));
  assert.equal(places.length, 1);
  assert.ok(places[0] > 3 && places[0] < 4, String(places));
});

test("speech over a fan is noticed", () => {
  assert.equal(found((t) => (t > 3 && t < 6 ? 0.02 + 3 * syllables(t) : 0.02)).length, 1);
});

test("silence, a room, a fan, a fan that is switched on, slammed doors and keys are not speech", () => {
  const every = (periodS, lengthS, loud) => (t) => (t % periodS < lengthS && t > 1 ? loud : ROOM);
  const sounds = [() => 0, () => ROOM, () => 0.05, (t) => (t > 3 ? 0.05 : ROOM), every(3, 0.2, 0.8), every(0.4, 0.02, 0.2)];
  assert.deepEqual(sounds.map((sound) => found(sound)), [[], [], [], [], [], []]);
});
