import assert from "node:assert/strict";
import { test } from "node:test";
import { TrackFollower } from "../../../static/voice/audio/track_follower.js";

const RATE = 48000;
const QUANTUM = 128;

/** Let `ms` of a voice (or silence) pass; returns what happened and what was to be heard. */
function pass(follower, ms, level = 0.5) {
  const happened = [];
  const heard = [];
  for (let passed = 0; passed < (RATE * ms) / 1000; passed += QUANTUM) {
    const output = new Float32Array(QUANTUM);
    const events = follower.take(new Float32Array(QUANTUM).fill(level), output);
    happened.push(...events.map(({ kind, itemId }) => `${kind} ${itemId}`));
    heard.push(...output);
  }
  return { happened, heard };
}

test("an item begins with its first sound, and is over when its last is", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  assert.deepEqual(pass(follower, 200, 0).happened, []);
  assert.equal(follower.position(), null);
  assert.deepEqual(pass(follower, 500).happened, ["started a"]);
  assert.ok(Math.abs(follower.position().playedMs - 500) < 5);
  assert.deepEqual(pass(follower, 600, 0).happened, []); // a pause in the speech: more will come
  pass(follower, 200);
  follower.end("a");
  assert.deepEqual(pass(follower, 390, 0).happened, []);
  assert.deepEqual(pass(follower, 20, 0).happened, ["ended a"]);
});

test("a short item that was sent whole before it sounds is followed all the same", () => {
  const follower = new TrackFollower(RATE);
  pass(follower, 1000, 0);
  follower.expect("a");
  follower.end("a");
  assert.deepEqual(pass(follower, 200, 0).happened, []);
  assert.deepEqual(pass(follower, 300).happened, ["started a"]);
  assert.deepEqual(pass(follower, 500, 0).happened, ["ended a"]);
});

test("an item without a sound does not stand in the way of the next", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  follower.end("a");
  pass(follower, 1600, 0);
  follower.expect("b");
  assert.deepEqual(pass(follower, 100).happened, ["started b"]);
});

test("the noise of a silent line is no voice", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  assert.deepEqual(pass(follower, 1000, 0.001).happened, []);
});

test("a flush silences at once and says what was heard", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 700);
  const [{ itemId, playedMs }] = follower.flush();
  assert.equal(itemId, "a");
  assert.ok(Math.abs(playedMs - 700) < 5);
  const { heard, happened } = pass(follower, 200); // the server has not heard of it yet
  assert.deepEqual(happened, []);
  assert.ok(heard.slice(0, 100).some((sample) => sample > 0.3)); // a fade, not a click
  assert.ok(heard.slice(RATE * 0.011).every((sample) => sample === 0));
});

test("after a flush it listens again when the server has stopped", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 300);
  follower.flush();
  pass(follower, 100);
  pass(follower, 80, 0);
  follower.expect("b");
  const { heard, happened } = pass(follower, 100);
  assert.deepEqual(happened, ["started b"]);
  assert.ok(heard.at(-1) > 0.49);
});

test("a voice whose name comes late counts from its first sound", () => {
  const follower = new TrackFollower(RATE);
  const { heard } = pass(follower, 100);
  assert.ok(heard.at(-1) > 0.49);
  follower.expect("a");
  assert.deepEqual(pass(follower, 100).happened, ["started a"]);
  assert.ok(Math.abs(follower.position().playedMs - 200) < 8);
});

test("what was cut is not expected again", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 100);
  follower.flush();
  follower.expect("a");
  pass(follower, 100, 0);
  assert.equal(follower.position(), null);
  assert.deepEqual(pass(follower, 100).happened, []);
});

test("what a dead network leaves silent was not heard", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 700);
  pass(follower, 7000, 0);
  assert.ok(follower.position().playedMs < 1800);
  const [{ itemId, playedMs }] = follower.flush();
  assert.equal(itemId, "a");
  assert.ok(Math.abs(playedMs - 700) < 10, String(playedMs));
});

test("a voice that pauses for long goes on where it was", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 700);
  pass(follower, 5000, 0);
  pass(follower, 300);
  assert.ok(Math.abs(follower.position().playedMs - 2000) < 10);
});

test("an item that was cut may go on, where it is expected again", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 300);
  follower.flush();
  pass(follower, 200, 0);
  follower.expect("a");
  assert.deepEqual(pass(follower, 300).happened, []);
  pass(follower, 200, 0);
  follower.goOn("a");
  follower.expect("a");
  assert.deepEqual(pass(follower, 300).happened, ["started a"]);
});

test("an item that was held is followed from where it goes on, whatever silence is between", () => {
  const follower = new TrackFollower(RATE);
  follower.expect("a");
  pass(follower, 1000);
  pass(follower, 300, 0);
  follower.goBack("a", 700);
  pass(follower, 400, 0);
  assert.ok(Math.abs(follower.position().playedMs - 700) < 5);
  pass(follower, 500);
  pass(follower, 100, 0);
  assert.ok(Math.abs(follower.position().playedMs - 1300) < 5);
});
