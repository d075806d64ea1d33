import assert from "node:assert/strict";
import { test } from "node:test";
import { PlayoutQueue } from "../../../static/voice/audio/playout_queue.js";

const RATE = 48000;
const QUANTUM = 128;

function speech(ms) {
  return new Float32Array((RATE * ms) / 1000).fill(0.5);
}

/** Pull `ms` of sound; returns what happened and the samples. */
function play(queue, ms) {
  const happened = [];
  const samples = [];
  for (let pulled = 0; pulled < (RATE * ms) / 1000; pulled += QUANTUM) {
    const output = new Float32Array(QUANTUM);
    happened.push(...queue.pull(output).map(({ kind, itemId }) => `${kind} ${itemId}`));
    samples.push(...output);
  }
  return { happened, samples };
}

test("it waits for 60 ms before it starts", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(40));
  assert.ok(play(queue, 20).samples.every((sample) => sample === 0));
  queue.push("a", speech(40));
  const { happened, samples } = play(queue, 20);
  assert.deepEqual(happened, ["started a"]);
  assert.ok(samples.every((sample) => sample === 0.5));
});

test("a short item that is complete plays at once", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(30));
  queue.end("a");
  assert.deepEqual(play(queue, 40).happened, ["started a", "ended a"]);
});

test("the word that an item is complete may come after its last sample", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(80));
  assert.deepEqual(play(queue, 100).happened, ["started a", "underrun a"]);
  queue.end("a");
  assert.deepEqual(play(queue, 10).happened, ["ended a"]);
});

test("it knows how much of which item was heard", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(100));
  queue.end("a");
  queue.push("b", speech(200));
  play(queue, 160);
  assert.deepEqual(queue.position(), { itemId: "b", playedMs: 60 });
});

test("a flush is silent within 20 ms, fades instead of clicking, and says what was cut", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(1000));
  queue.push("b", speech(100));
  play(queue, 400);
  assert.deepEqual(queue.flush(), [{ itemId: "a", playedMs: 400 }, { itemId: "b", playedMs: 0 }]);
  const { samples } = play(queue, 100);
  const last = samples.findLastIndex((sample) => sample !== 0);
  assert.ok(last > 0 && last < RATE * 0.02, `${last / (RATE / 1000)} ms`);
  for (let index = 1; index < samples.length; index += 1) {
    assert.ok(Math.abs(samples[index] - samples[index - 1]) < 0.01, "a click");
  }
  assert.equal(queue.position(), null);
});

test("what arrives late for a flushed item is dropped, and the next item plays", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(200));
  play(queue, 100);
  queue.flush();
  queue.push("a", speech(500));
  assert.deepEqual(play(queue, 50).happened, []);
  queue.push("b", speech(100));
  queue.end("b");
  assert.deepEqual(play(queue, 120).happened, ["started b", "ended b"]);
});

test("a new item right after a flush is not eaten by the fade", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(200));
  play(queue, 100);
  queue.flush();
  queue.push("b", speech(100));
  queue.end("b");
  const { samples } = play(queue, 120);
  assert.equal(samples.filter((sample) => sample === 0.5).length, RATE / 10);
});

test("an underrun makes it more careful, clean items make it bolder again", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(80));
  play(queue, 120);
  assert.equal(queue.targetMs, 100);
  for (let item = 0; item < 10; item += 1) {
    queue.push(`clean ${item}`, speech(150));
    queue.end(`clean ${item}`);
    play(queue, 200);
  }
  assert.equal(queue.targetMs, 60);
});

test("nothing to flush is nothing cut", () => {
  assert.deepEqual(new PlayoutQueue(RATE).flush(), []);
});

test("an item that was flushed may go on", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", new Float32Array(RATE).fill(0.5));
  queue.flush();
  queue.push("a", new Float32Array(RATE).fill(0.5));
  assert.equal(queue.queuedMs < 1000 + 1, true);
  queue.goOn("a");
  queue.push("a", new Float32Array(RATE).fill(0.5));
  queue.end("a");
  assert.deepEqual(queue.pull(new Float32Array(128)), [{ kind: "started", itemId: "a" }]);
});

test("what is held waits, and goes on from a place that was heard", () => {
  const queue = new PlayoutQueue(RATE);
  const words = Float32Array.from({ length: RATE }, (_, index) => index / RATE + 0.001);
  queue.push("a", words);
  play(queue, 500);
  queue.hold(true);
  assert.ok(play(queue, 200).samples.every((sample) => sample === 0));
  queue.push("a", speech(100));
  queue.goBack("a", 300);
  queue.hold(false);
  const { samples } = play(queue, 20);
  assert.ok(Math.abs(samples[0] - 0.301) < 0.001);
  assert.ok(Math.abs(queue.position().playedMs - 320) < 5);
  queue.end("a");
  assert.deepEqual(play(queue, 800).happened, ["ended a"]);
});

test("a flush ends what is held", () => {
  const queue = new PlayoutQueue(RATE);
  queue.push("a", speech(500));
  play(queue, 200);
  queue.hold(true);
  const [{ itemId, playedMs }] = queue.flush();
  assert.equal(itemId, "a");
  assert.ok(Math.abs(playedMs - 200) < 5);
  queue.push("b", speech(100));
  assert.ok(play(queue, 20).happened.includes("started b"));
});
