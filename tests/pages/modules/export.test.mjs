import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversation } from "../../../static/voice/conversation.js";
import { asJson, asText } from "../../../static/voice/export.js";

const METRICS = { end_of_turn_ms: 320, recognition_ms: 330, first_token_ms: 340, first_audio_ms: 410 };

function conversation({ unheard = "", metrics = null, playoutMs = null } = {}) {
  const made = new Conversation();
  made.addTyped("u", "What can you do?");
  made.receive({ type: "response.output_item.added", response_id: "r", item: { id: "a", type: "message", role: "assistant" } });
  made.receive({ type: "response.audio_transcript.delta", item_id: "a", delta: "I tell the time. I do sums." });
  made.receive({ type: "conversation.item.truncated", item_id: "a", transcript: "I tell the time. I ", unheard });
  made.receive({ type: "response.done", response: { id: "r", status: "completed", metrics } });
  if (playoutMs !== null) {
    made.setPlayout("a", playoutMs);
  }
  return made.items;
}

for (const unheard of ["do sums.", " do sums.", "do sums.\n"]) {
  test(`what was not heard stands in brackets of its own: ${JSON.stringify(unheard)}`, () => {
    const text = asText(conversation({ unheard }));
    assert.equal(text, "You: What can you do?\n\nAssistant: I tell the time. I [interrupted, not heard: do sums.]");
  });
}

test("a reply that was heard whole has no brackets", () => {
  assert.ok(!asText(conversation()).includes("["));
});

test("the stages of an exported reply add up to its marks", () => {
  const reply = JSON.parse(asJson(conversation({ metrics: METRICS, playoutMs: 60 }))).items[1];
  assert.deepEqual(reply.metrics, { ...METRICS, playout_ms: 60 });
  const { playback, ...stages } = reply.stages_ms;
  assert.equal(Object.values(stages).reduce((sum, ms) => sum + ms, 0), METRICS.first_audio_ms);
  assert.equal(playback, 60);
  assert.equal(reply.counted_from, "the end of your speech");
});

test("an exported reply to a typed message says so", () => {
  const metrics = { end_of_turn_ms: null, recognition_ms: null, first_token_ms: 12, first_audio_ms: 97 };
  const reply = JSON.parse(asJson(conversation({ metrics, playoutMs: 60 }))).items[1];
  assert.equal(reply.counted_from, "your message");
  assert.deepEqual(reply.stages_ms, { "first word": 12, "first sound": 85, playback: 60 });
});
