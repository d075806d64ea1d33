import assert from "node:assert/strict";
import { test } from "node:test";
import { addPiece, cutPieces } from "../../../static/voice/item_audio.js";

function audio() {
  return { pieces: [], samples: 0, rateHz: 24000, isComplete: false, isFollowed: false, resampler: null };
}

test("what was not heard is cut, and comes again", () => {
  const item = audio();
  addPiece(item, new Int16Array(2400).fill(1), 24000);
  addPiece(item, new Int16Array(2400).fill(2), 24000);
  cutPieces(item, 150);
  assert.equal(item.samples, 3600);
  assert.deepEqual(item.pieces.map((piece) => piece.length), [2400, 1200]);
  addPiece(item, new Int16Array(1200).fill(3), 24000);
  assert.equal(item.samples, 4800);
  cutPieces(item, 0);
  assert.deepEqual([item.samples, item.pieces], [0, []]);
});

test("an item keeps its rate when it goes on at another one", () => {
  const item = audio();
  addPiece(item, new Int16Array(4800).fill(1000), 48000);
  for (let piece = 0; piece < 10; piece += 1) {
    addPiece(item, new Int16Array(240).fill(1000), 24000);
  }
  assert.equal(item.rateHz, 48000);
  assert.ok(Math.abs(item.samples - 9600) < 200, String(item.samples));
  assert.ok(Math.abs(item.pieces.at(-1)[100] - 1000) < 20);
});
