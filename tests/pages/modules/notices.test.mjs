import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { NOTICES } from "../../../static/voice/notices.js";

const SOURCES = new URL("../../../static/voice/", import.meta.url);
const main = readFileSync(new URL("main.js", SOURCES), "utf8");

/** Every module of the page, as text. */
function sources() {
  return readdirSync(SOURCES, { recursive: true })
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(new URL(name, SOURCES), "utf8"));
}

test("every problem that the page names can be shown", () => {
  const named = sources().flatMap((source) => [...source.matchAll(/(?:problem|MicrophoneError)\("([a-z_]+)"/g)].map(([, code]) => code));
  assert.ok(named.length > 10, String(named));
  const unknown = named.filter((code) => !(code in NOTICES));
  assert.deepEqual(unknown, []);
});

test("every notice says what is wrong, and what to do, and main.js can do it", () => {
  for (const [code, { title, label, action, alternativeAction = action }] of Object.entries(NOTICES)) {
    assert.ok(title && label, code);
    for (const done of [action, alternativeAction]) {
      assert.match(main, new RegExp(`["']?${done}["']?: (async )?\\(\\) =>`), `${code}: ${done}`);
    }
  }
});
