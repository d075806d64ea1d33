import assert from "node:assert/strict";
import { test } from "node:test";
import { continuation } from "../../../static/voice/session_settings.js";

test("a reply that goes on keeps the person's instructions and knows what was to come", () => {
  const asked = continuation("Speak like a pirate.", " Then copy it.");
  assert.ok(asked.startsWith("Speak like a pirate.\n\nThe connection was lost"));
  assert.ok(asked.endsWith("You were about to say: Then copy it."));
  assert.ok(continuation("", "").startsWith("The connection was lost"));
  assert.ok(!continuation("", " ").includes("about to say"));
  assert.ok(continuation("", "long ".repeat(100000)).length < 10000);
});
