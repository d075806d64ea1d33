// What calls have shown of this network is known to the next page, for an hour.

import { test } from "node:test";
import assert from "node:assert/strict";
import { MediaPath } from "../../../static/voice/transports/media_path.js";

const HOUR_MS = 3600000;

class Shelf {
  #values = new Map();

  getItem(name) {
    return this.#values.get(name) ?? null;
  }

  setItem(name, value) {
    this.#values.set(name, value);
  }
}

test("a network that lets nothing through is remembered for an hour, by other pages too", () => {
  const shelf = new Shelf();
  let now = 1e12;
  const path = new MediaPath(shelf, () => now);
  assert.equal(path.isOpen(), true);
  path.block();
  assert.equal(path.isOpen(), false);
  assert.equal(new MediaPath(shelf, () => now).isOpen(), false);
  now += HOUR_MS;
  assert.equal(path.isOpen(), true);
  assert.equal(new MediaPath(shelf, () => now).isOpen(), true);
});

test("it is forgotten when the network changes", () => {
  const shelf = new Shelf();
  const path = new MediaPath(shelf);
  path.block();
  path.forget();
  assert.equal(path.isOpen(), true);
  assert.equal(new MediaPath(shelf).isOpen(), true);
});

test("it is open to a server that was started again, in other pages too", () => {
  const shelf = new Shelf();
  const path = new MediaPath(shelf);
  path.block("first");
  assert.equal(path.isOpen("first"), false);
  assert.equal(new MediaPath(shelf).isOpen("first"), false);
  assert.equal(path.isOpen("second"), true);
  assert.equal(new MediaPath(shelf).isOpen("second"), true);
});

test("a clock that was set back does not close it for long", () => {
  const shelf = new Shelf();
  new MediaPath(shelf, () => 2e12).block();
  assert.equal(new MediaPath(shelf, () => 1e12).isOpen(), true);
});

test("without storage it is known to this page", () => {
  const refuse = () => {
    throw new Error("forbidden");
  };
  const path = new MediaPath({ getItem: refuse, setItem: refuse });
  assert.equal(path.isOpen(), true);
  path.block();
  assert.equal(path.isOpen(), false);
});

test("nonsense in the storage closes nothing", () => {
  const shelf = new Shelf();
  shelf.setItem("voiceapp.no_media_path_until", "soon");
  assert.equal(new MediaPath(shelf).isOpen(), true);
});
