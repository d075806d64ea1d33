import assert from "node:assert/strict";
import { test } from "node:test";
import { Reminders } from "../../../static/voice/reminders.js";

const MINUTE_MS = 60000;
const TEA = { id: "tea", name: "the 3 minute timer", text: "Your 3 minute timer is up.", due_in_ms: 3 * MINUTE_MS };
const EGG = { id: "egg", name: "the 5 minute timer", text: "Your 5 minute timer is up.", due_in_ms: 5 * MINUTE_MS };

function set() {
  const reminders = new Reminders();
  reminders.update([TEA], "first", 0);
  reminders.update([{ ...TEA, due_in_ms: 2 * MINUTE_MS }, EGG], "second", MINUTE_MS);
  return reminders;
}

const names = ({ reminders }) => reminders.map(({ id }) => id);

test("the next session is told what is left of each", () => {
  const kept = JSON.parse(JSON.stringify(set().pending));
  const reminders = new Reminders();
  reminders.restore(kept);
  assert.deepEqual(reminders.resume(null, null, 4 * MINUTE_MS), {
    reminders: [{ ...TEA, due_in_ms: 0 }, { ...EGG, due_in_ms: 2 * MINUTE_MS }],
    isSaidAnew: false,
  });
});

test("what is no reminder is not taken from storage", () => {
  const reminders = new Reminders();
  for (const records of [undefined, "tea", [{ id: "tea" }], [{ ...set().pending[0], dueAt: null }]]) {
    reminders.restore(records);
    assert.deepEqual(reminders.pending, []);
  }
});

test("one whose reply is asked for anew is left to that reply", () => {
  assert.deepEqual(names(set().resume(null, { id: "second", role: "user" }, 0)), ["tea"]);
  assert.deepEqual(names(set().resume(null, { id: "second", role: "assistant" }, 0)), ["tea", "egg"]);
});

test("one that was cut off is said anew, and one that was heard is not", () => {
  const cut = set().resume({ heard: "", unheard: TEA.text }, null, 3 * MINUTE_MS);
  assert.deepEqual([names(cut), cut.isSaidAnew], [["tea", "egg"], true]);
  const later = set().resume({ heard: `${TEA.text} `, unheard: EGG.text }, null, 5 * MINUTE_MS);
  assert.deepEqual([names(later), later.isSaidAnew], [["egg"], true]);
  assert.equal(set().resume({ heard: "It is", unheard: " noon." }, null, MINUTE_MS).isSaidAnew, false);
});

test("what was due long ago is forgotten", () => {
  assert.deepEqual(names(set().resume(null, null, 19 * MINUTE_MS)), ["egg"]);
});

test("who ends the session while one is said does not hear it again", () => {
  const reminders = set();
  reminders.dropDue(3 * MINUTE_MS);
  assert.deepEqual(names(reminders.resume(null, null, 3 * MINUTE_MS)), ["egg"]);
});
