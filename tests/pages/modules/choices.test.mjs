import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefault } from "../../../static/voice/choices.js";

const VOICES = [["amy", "Amy"], ["joe", "Joe"]];

test("what was chosen stays as long as there is such a thing", () => {
  assert.deepEqual(withDefault(VOICES, "joe", "amy"), { choices: VOICES, chosen: "joe" });
  assert.deepEqual(withDefault(VOICES, "gone", "amy"), { choices: VOICES, chosen: "amy" });
  assert.deepEqual(withDefault(VOICES, "", "amy"), { choices: VOICES, chosen: "amy" });
});

test("a default that is not in the list has an entry of its own, and something is always chosen", () => {
  for (const [stored, chosen] of [["gone", ""], ["", ""], ["unlisted", ""], ["joe", "joe"]]) {
    assert.deepEqual(withDefault(VOICES, stored, "unlisted"), { choices: [["", "Default"], ...VOICES], chosen });
  }
  assert.deepEqual(withDefault([], "gone", ""), { choices: [["", "Default"]], chosen: "" });
});
