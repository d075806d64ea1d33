import assert from "node:assert/strict";
import { test } from "node:test";
import * as pcm from "../../../static/voice/audio/pcm.js";
import { RingBuffer } from "../../../static/voice/audio/ring_buffer.js";

test("floats become int16 and loud ones are clipped", () => {
  assert.deepEqual(pcm.int16FromFloat(Float32Array.of(0, 1, -1, 2, -2, 0.5)), Int16Array.of(0, 32767, -32768, 32767, -32768, 16384));
});

test("base64 is little-endian and survives the way there and back", () => {
  assert.equal(pcm.base64FromInt16(Int16Array.of(1, -2)), "AQD+/w==");
  const noise = Int16Array.from({ length: 20000 }, () => Math.floor(Math.random() * 65536) - 32768);
  assert.deepEqual(pcm.int16FromBase64(pcm.base64FromInt16(noise)), noise);
});

test("an odd last byte is dropped", () => {
  assert.deepEqual(pcm.int16FromBase64("AQAC"), Int16Array.of(1));
});

test("loudness of a full tone is 0.707 and the meter is full long before", () => {
  const tone = Float32Array.from({ length: 1000 }, (_, index) => Math.sin(index / 5));
  assert.ok(Math.abs(pcm.loudness(tone) - Math.SQRT1_2) < 0.01);
  assert.equal(pcm.meterLevel(pcm.loudness(tone)), 1);
  assert.equal(pcm.meterLevel(0), 0);
});

test("a WAV file has its channels side by side", () => {
  const file = pcm.wavFile([Int16Array.of(1, 2, 3), Int16Array.of(4)], 16000);
  const view = new DataView(file.buffer);
  assert.equal(new TextDecoder().decode(file.subarray(0, 4)), "RIFF");
  assert.equal(view.getUint32(24, true), 16000);
  assert.equal(view.getUint32(40, true), 12);
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((index) => view.getInt16(44 + index * 2, true)), [1, 4, 2, 0, 3, 0]);
});

test("the ring buffer gives back what went in, across its end and while growing", () => {
  const ring = new RingBuffer(8);
  let pushed = 0;
  let pulled = 0;
  for (let step = 0; step < 500; step += 1) {
    const size = (step * 7) % 13;
    ring.push(Float32Array.from({ length: size }, () => pushed++));
    const target = new Float32Array((step * 5) % 14);
    const count = ring.pull(target);
    for (const sample of target.subarray(0, count)) {
      assert.equal(sample, pulled++);
    }
    assert.equal(ring.length, pushed - pulled);
  }
});

test("a cleared ring buffer is empty", () => {
  const ring = new RingBuffer(4);
  ring.push(new Float32Array(3));
  ring.clear();
  assert.equal(ring.pull(new Float32Array(3)), 0);
});
