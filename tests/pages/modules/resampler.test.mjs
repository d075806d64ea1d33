import assert from "node:assert/strict";
import { test } from "node:test";
import { Resampler } from "../../../static/voice/audio/resampler.js";

function tone(frequency, rate, seconds) {
  return Float32Array.from({ length: rate * seconds }, (_, index) => Math.sin((2 * Math.PI * frequency * index) / rate));
}

function run(resampler, samples, block = 128) {
  const output = [];
  for (let start = 0; start < samples.length; start += block) {
    output.push(...resampler.process(samples.subarray(start, start + block)));
  }
  output.push(...resampler.finish());
  return Float32Array.from(output);
}

/** Power of one frequency in the middle of a sound, relative to a full tone, in dB. */
function decibels(samples, frequency, rate) {
  const middle = samples.subarray(Math.floor(samples.length * 0.2), Math.floor(samples.length * 0.8));
  let cosine = 0;
  let sine = 0;
  middle.forEach((sample, index) => {
    cosine += sample * Math.cos((2 * Math.PI * frequency * index) / rate);
    sine += sample * Math.sin((2 * Math.PI * frequency * index) / rate);
  });
  return 20 * Math.log10((2 * Math.hypot(cosine, sine)) / middle.length + 1e-12);
}

function loudness(samples) {
  const middle = samples.subarray(Math.floor(samples.length * 0.2), Math.floor(samples.length * 0.8));
  return 10 * Math.log10(middle.reduce((sum, sample) => sum + sample * sample, 0) / middle.length / 0.5 + 1e-12);
}

for (const rate of [48000, 44100, 96000, 32000, 22050]) {
  test(`${rate} to 16000 Hz keeps speech and makes no false tones`, () => {
    for (const frequency of [100, 1000, 6000]) {
      const output = run(new Resampler(rate, 16000), tone(frequency, rate, 1));
      assert.ok(Math.abs(decibels(output, frequency, 16000)) < 0.3, `${frequency} Hz is changed`);
    }
    for (const frequency of [9500, 10900]) {
      if (frequency < rate / 2) {
        const output = run(new Resampler(rate, 16000), tone(frequency, rate, 1));
        assert.ok(loudness(output) < -60, `${frequency} Hz folds back at ${loudness(output)} dB`);
      }
    }
  });
}

test("24000 to 48000 Hz keeps the tone and leaves no image", () => {
  const output = run(new Resampler(24000, 48000), tone(3000, 24000, 1));
  assert.ok(Math.abs(decibels(output, 3000, 48000)) < 0.1);
  assert.ok(decibels(output, 21000, 48000) < -65);
});

test("the length is right to the sample, however the blocks are cut", () => {
  for (const [from, to] of [[48000, 16000], [44100, 16000], [24000, 44100], [24000, 48000]]) {
    const input = tone(440, from, 1);
    const whole = run(new Resampler(from, to), input, input.length);
    const pieces = run(new Resampler(from, to), input, 37);
    assert.ok(Math.abs(whole.length - to) <= 1, `${from} to ${to}: ${whole.length}`);
    assert.deepEqual(pieces, whole);
  }
});

test("a sound stays where it was: the delay is only waiting, not shift", () => {
  const click = new Float32Array(4800);
  click[2400] = 1;
  const output = run(new Resampler(48000, 16000), click);
  assert.equal(output.indexOf(Math.max(...output)), 800);
});

test("after the end of a sound nothing of it is left", () => {
  const resampler = new Resampler(24000, 48000);
  run(resampler, tone(440, 24000, 0.1));
  assert.ok(run(resampler, new Float32Array(240)).every((sample) => sample === 0));
});

test("equal rates pass unchanged", () => {
  const input = tone(440, 16000, 0.1);
  assert.deepEqual(run(new Resampler(16000, 16000), input), input);
});
