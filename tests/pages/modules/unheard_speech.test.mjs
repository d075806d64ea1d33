import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock } from "./clock.mjs";
import { Conversation } from "../../../static/voice/conversation.js";
import { UnheardSpeech } from "../../../static/voice/unheard_speech.js";

function listening() {
  const conversation = new Conversation();
  return { conversation, speech: new UnheardSpeech(conversation) };
}

test("speech in an outage is told once, and again in the next", () => {
  const { conversation, speech } = listening();
  speech.lose();
  speech.speaks(false);
  speech.speaks(false);
  assert.equal(conversation.items.length, 1);
  speech.reset();
  speech.speaks(false);
  assert.equal(conversation.items.length, 1);
  speech.lose();
  speech.speaks(false);
  assert.equal(conversation.items.length, 2);
});

test("speech that the server did not notice before the loss was lost with it", async () => {
  const clock = new Clock();
  try {
    const { speech } = listening();
    assert.equal(speech.lose(), false);
    speech.reset();
    speech.speaks(true);
    assert.equal(speech.lose(), false);
    speech.reset();
    speech.speaks(false);
    await clock.pass(10, 500);
    assert.equal(speech.lose(), true);
    speech.reset();
    speech.speaks(false);
    speech.notice();
    assert.equal(speech.lose(), false);
    speech.reset();
    speech.speaks(false);
    await clock.pass(21, 500);
    assert.equal(speech.lose(), false);
  } finally {
    clock.restore();
  }
});
