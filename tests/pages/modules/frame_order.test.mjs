// Frames arrive as a network likes; they are played in their order, and nothing waits for long.

import { test } from "node:test";
import assert from "node:assert/strict";
import { FrameOrder } from "../../../static/voice/audio/frame_order.js";
import { JitterBuffer } from "../../../static/voice/audio/jitter_buffer.js";

function played(arrivals) {
  const order = new FrameOrder();
  return arrivals.map(([number, at]) => order.push(number, number, at));
}

test("frames in order are played at once", () => {
  assert.deepEqual(played([[7, 0], [8, 20], [9, 40]]), [[7], [8], [9]]);
});

test("a late frame is waited for", () => {
  assert.deepEqual(played([[1, 0], [3, 20], [4, 40], [2, 45]]), [[1], [], [], [2, 3, 4]]);
});

test("a lost frame holds up three others at most, and is not played afterwards", () => {
  assert.deepEqual(played([[1, 0], [3, 20], [4, 40], [5, 60], [2, 70], [6, 80]]), [[1], [], [], [3, 4, 5], [], [6]]);
});

test("after a silence that was not sent, the next frame is played at once", () => {
  assert.deepEqual(played([[1, 0], [2, 20], [40, 800], [41, 820]]), [[1], [2], [40], [41]]);
});

test("a little sound waits, and more of it where frames are late", () => {
  const buffer = new JitterBuffer(1000);
  const block = new Float32Array(20);
  const voice = new Float32Array(20).fill(0.5);
  buffer.push(voice);
  buffer.pull(block);
  assert.equal(block[0], 0);
  buffer.push(voice);
  buffer.pull(block);
  assert.equal(block[0], 0.5);
  buffer.pull(block);
  buffer.pull(block); // nothing is there, in the middle of a word
  assert.equal(block[0], 0);
  assert.equal(buffer.delayMs, 60);
  for (let times = 0; times < 3; times += 1) {
    buffer.push(new Float32Array(20));
  }
  for (let times = 0; times < 4; times += 1) {
    buffer.pull(block); // runs dry in a silence
  }
  assert.equal(buffer.delayMs, 40);
});
