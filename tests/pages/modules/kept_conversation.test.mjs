import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock } from "./clock.mjs";

globalThis.window = new EventTarget();
globalThis.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
const { Conversation } = await import("../../../static/voice/conversation.js");
const { KeptConversation } = await import("../../../static/voice/kept_conversation.js");

const KEY = "voiceapp.conversation";

/** The storage of one tab, with so much room. */
class Tab {
  room = Infinity;
  values = new Map();

  getItem(key) {
    return this.values.get(key) ?? null;
  }

  setItem(key, value) {
    if (value.length > this.room) {
      throw new DOMException("full", "QuotaExceededError");
    }
    this.values.set(key, value);
  }

  removeItem(key) {
    this.values.delete(key);
  }
}

/** Load the page in a tab; `hide()` is what happens when it is left. */
function load(tab, { visitor = "", isActive = true, now = 1000 } = {}) {
  const page = { conversation: new Conversation(), now };
  page.kept = new KeptConversation(tab, page.conversation, { visitor, isActive: () => isActive, now: () => page.now });
  page.wasOpen = page.kept.restore();
  page.hide = () => page.kept.save();
  page.texts = () => page.conversation.items.map(({ text }) => text);
  return page;
}

const REPLY = "From the manual: Open the page. Press New key. Then copy it.";

function reply(conversation, { id = "a", text = REPLY, heardMs = 4000 } = {}) {
  conversation.receive({ type: "response.output_item.added", response_id: "r", item: { id, type: "message", role: "assistant" } });
  conversation.receive({ type: "response.audio_transcript.delta", item_id: id, delta: text });
  conversation.addAudio(id, new Int16Array(24000 * 6), 24000);
  conversation.receive({ type: "response.audio.done", item_id: id });
  conversation.heardUntil(id, heardMs);
}

test("what was said is there after a reload, and is gone on with", () => {
  const tab = new Tab();
  const before = load(tab);
  assert.equal(before.wasOpen, false);
  before.conversation.addTyped("u", "How do I create a key?");
  reply(before.conversation);
  before.hide();
  const after = load(tab, { now: 60000 });
  assert.equal(after.wasOpen, true);
  assert.deepEqual(after.texts(), ["How do I create a key?", "From the manual: Open the page. Press New"]);
  assert.equal(after.conversation.items[0].at.getTime(), before.conversation.items[0].at.getTime());
  assert.ok(after.conversation.items[0].isTyped);
  assert.deepEqual(after.conversation.takeUpCutOff(61000), { heard: "From the manual: Open the page. ", unheard: "Press New key. Then copy it." });
  assert.deepEqual(after.conversation.history().map(({ id }) => id), ["u", "a"]);
});

test("a page that is left goes on unharmed when it is not left after all", () => {
  const page = load(new Tab());
  reply(page.conversation);
  page.hide();
  assert.deepEqual([page.conversation.find("a").state, page.conversation.find("a").text], ["live", REPLY]);
});

test("half a turn comes back as words that nobody answers", () => {
  const tab = new Tab();
  const before = load(tab);
  before.conversation.receive({ type: "input_audio_buffer.speech_started", item_id: "u" });
  before.conversation.receive({ type: "conversation.item.input_audio_transcription.delta", item_id: "u", text: "What ", stash: "is" });
  before.hide();
  const after = load(tab);
  assert.deepEqual([after.texts(), after.conversation.history()], [["What is …"], []]);
});

test("after a quarter of an hour a conversation can be read, and a new one begins below", () => {
  const tab = new Tab();
  const before = load(tab);
  before.conversation.addTyped("u", "How are you?");
  before.hide();
  const after = load(tab, { now: 1000 + 16 * 60000 });
  assert.equal(after.wasOpen, false);
  assert.equal(after.texts()[0], "How are you?");
  assert.match(after.texts()[1], /can only be read/);
  assert.deepEqual([after.conversation.history(), after.conversation.last("user")], [[], null]);
  after.conversation.addTyped("v", "And now?");
  after.hide();
  const later = load(tab, { now: 2000 + 16 * 60000 });
  assert.equal(later.texts().length, 3);
  assert.deepEqual(later.conversation.history().map(({ id }) => id), ["v"]);
});

test("a silent conversation that was open until the end is not old", () => {
  const tab = new Tab();
  const before = load(tab);
  before.conversation.addTyped("u", "How are you?");
  before.now += 60 * 60000;
  before.hide();
  assert.equal(load(tab, { now: before.now + 60000 }).wasOpen, true);
});

test("one that was ended long before the page was left is", () => {
  const tab = new Tab();
  const before = load(tab, { isActive: false });
  before.conversation.addTyped("u", "How are you?");
  before.now += 60 * 60000;
  before.hide();
  assert.equal(load(tab, { now: before.now + 60000 }).conversation.history().length, 0);
});

test("signing out, and beginning anew, leave nothing", () => {
  for (const leave of [(page) => page.kept.forget(), (page) => page.conversation.clear()]) {
    const tab = new Tab();
    const page = load(tab);
    page.conversation.addTyped("u", "A secret");
    page.hide();
    assert.ok(tab.getItem(KEY).includes("A secret"));
    leave(page);
    page.hide();
    assert.equal(tab.getItem(KEY), null);
  }
});

test("a person does not see what another one said in this tab; who was a guest takes it along", () => {
  const tab = new Tab();
  const guest = load(tab);
  guest.conversation.addTyped("u", "A secret");
  assert.ok(guest.kept.isOf("paula"));
  assert.ok(!guest.kept.isOf("quentin"));
  guest.hide();
  assert.deepEqual(load(tab, { visitor: "paula" }).texts(), ["A secret"]);
  assert.deepEqual(load(tab, { visitor: "" }).texts(), []);
  assert.equal(tab.getItem(KEY), null);
});

test("a long conversation keeps its latest words, within bounds", () => {
  const tab = new Tab();
  const before = load(tab);
  for (let index = 0; index < 3000; index += 1) {
    before.conversation.addTyped(`u${index}`, `${index} ${"é\u0000\u2028".repeat(100)}`);
  }
  before.conversation.addTyped("giant", "x".repeat(1000000));
  before.hide();
  assert.ok(tab.getItem(KEY).length < 510000);
  const after = load(tab);
  assert.equal(after.conversation.find("giant").text.length, 20002);
  assert.equal(after.conversation.items.at(-2).text, before.conversation.items.at(-2).text);
  assert.ok(after.conversation.items.length > 50);
});

test("no character is torn apart", () => {
  const tab = new Tab();
  const before = load(tab);
  before.conversation.addTyped("u", `x${"👩".repeat(20000)}`);
  before.hide();
  assert.match(load(tab).texts()[0], /^x(👩)+ …$/u);
});

test("what is said is kept within a second or two, without leaving the page", async () => {
  const clock = new Clock();
  try {
    const tab = new Tab();
    const page = load(tab);
    page.conversation.addTyped("u", "Hello");
    assert.equal(tab.getItem(KEY), null);
    await clock.pass(2);
    assert.deepEqual(load(tab).texts(), ["Hello"]);
  } finally {
    clock.restore();
  }
});

test("a storage that is full or forbidden, and nonsense in it, are borne", () => {
  const full = new Tab();
  full.room = 10;
  const page = load(full);
  page.conversation.addTyped("u", "Hello");
  page.hide();
  assert.equal(full.getItem(KEY), null);
  const forbidden = () => {
    throw new DOMException("no", "SecurityError");
  };
  const denied = load({ getItem: forbidden, setItem: forbidden, removeItem: forbidden });
  denied.conversation.addTyped("u", "Hello");
  denied.hide();
  denied.conversation.clear();
  const odd = [null, 1, {}, { id: 1 }, { id: "x", role: "admin" }, { id: "x", role: "user", text: {}, unheard: "" }];
  const fine = { id: "y", role: "user", at: "not a time", text: "fine", unheard: "", tool: 7, metrics: "none" };
  for (const [value, texts] of [["{", []], ["[]", []], ["null", []], ['{"version":1}', []], ['{"version":9,"items":[]}', []], [JSON.stringify({ version: 1, visitor: "", usedAt: 1000, items: [...odd, fine] }), ["fine"]]]) {
    const tab = new Tab();
    tab.setItem(KEY, value);
    assert.deepEqual(load(tab).texts(), texts, value);
  }
});
