import assert from "node:assert/strict";
import { test } from "node:test";
import { delayMs } from "../../../static/voice/backoff.js";

test("the first tries follow quickly, later ones at a distance, and it never ends", () => {
  const even = () => 0.5;
  assert.deepEqual([0, 1, 2, 3, 4, 29, 30, 100000].map((tries) => delayMs(tries, even)), [200, 1000, 2000, 4000, 5000, 5000, 15000, 15000]);
});

test("pages that were lost together do not come back together", () => {
  assert.deepEqual([delayMs(4, () => 0), delayMs(4, () => 0.999999)], [3750, 6250]);
  assert.ok(new Set(Array.from({ length: 100 }, () => delayMs(4))).size > 50);
});
