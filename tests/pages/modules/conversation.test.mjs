import assert from "node:assert/strict";
import { test } from "node:test";
import { Approvals } from "../../../static/voice/approvals.js";
import { Conversation } from "../../../static/voice/conversation.js";
import { Echo, isEcho } from "../../../static/voice/echo.js";
import { spokenChars, wholeSentences } from "../../../static/voice/alignment.js";
import { repliedBy, stages } from "../../../static/voice/views/waterfall.js";

function replied(conversation, { id = "a", text = "It is five past eight.", ms = 2000 } = {}) {
  conversation.receive({ type: "response.output_item.added", response_id: "r", item: { id, type: "message", role: "assistant" } });
  conversation.receive({ type: "response.audio_transcript.delta", item_id: id, delta: text });
  conversation.addAudio(id, new Int16Array((24000 * ms) / 1000), 24000);
  conversation.receive({ type: "response.audio.done", item_id: id });
}

test("words that may still change stand apart until they are final", () => {
  const conversation = new Conversation();
  conversation.receive({ type: "input_audio_buffer.speech_started", item_id: "u" });
  assert.deepEqual(conversation.items, []);
  conversation.receive({ type: "conversation.item.input_audio_transcription.delta", item_id: "u", text: "What ", stash: "time" });
  assert.deepEqual([conversation.find("u").text, conversation.find("u").stash], ["What ", "time"]);
  conversation.receive({ type: "conversation.item.input_audio_transcription.completed", item_id: "u", transcript: "What time?" });
  assert.deepEqual([conversation.find("u").text, conversation.find("u").stash, conversation.find("u").state], ["What time?", "", "done"]);
});

test("words that come to nothing are shown no more, and those that were sure stay", () => {
  const transcription = "conversation.item.input_audio_transcription";
  for (const end of [
    { type: `${transcription}.completed`, transcript: "" },
    { type: `${transcription}.failed` },
    { type: "input_audio_buffer.speech_stopped", reason: "turn_invalid" },
  ]) {
    const conversation = new Conversation();
    const removed = [];
    conversation.addEventListener("removed", ({ detail }) => removed.push(detail));
    conversation.receive({ type: `${transcription}.delta`, item_id: "name", text: "", stash: "Siobhan R." });
    conversation.receive({ ...end, item_id: "name" });
    assert.deepEqual([removed, conversation.items], [["name"], []]);
    conversation.receive({ type: `${transcription}.delta`, item_id: "sure", text: "Call ", stash: "Siobhan R." });
    conversation.receive({ ...end, item_id: "sure", transcript: "Call " });
    assert.deepEqual([removed, conversation.find("sure").text, conversation.find("sure").stash], [["name"], "Call ", ""]);
  }
});

test("the caption follows the voice, word by word", () => {
  const conversation = new Conversation();
  replied(conversation);
  conversation.heardUntil("a", 1100);
  const [spoken, upcoming] = conversation.find("a").spokenSplit;
  assert.equal(spoken + upcoming, "It is five past eight.");
  assert.equal(spoken, "It is five past");
});

test("a cut reply keeps what was heard; the server's word replaces the guess", () => {
  const conversation = new Conversation();
  replied(conversation);
  conversation.cutShort("a", 1100);
  assert.equal(conversation.find("a").unheard, " eight.");
  assert.deepEqual(conversation.find("a").spokenSplit, ["It is five past", ""]);
  conversation.receive({ type: "conversation.item.truncated", item_id: "a", transcript: "It is", unheard: " five past eight." });
  assert.deepEqual([conversation.find("a").text, conversation.find("a").unheard], ["It is", " five past eight."]);
  conversation.receive({ type: "response.done", response: { id: "r", status: "cancelled" } });
  assert.equal(conversation.find("a").state, "interrupted");
  assert.deepEqual(conversation.history(), [{ id: "a", role: "assistant", text: "It is" }]);
});

test("items stand in the server's order", () => {
  const conversation = new Conversation();
  conversation.addTyped("late", "second");
  conversation.receive({ type: "conversation.item.created", item: { id: "early", type: "message", role: "user", content: [{ type: "input_text", text: "first" }] } });
  conversation.receive({ type: "conversation.item.created", item: { id: "late", type: "message", role: "user" }, previous_item_id: "early" });
  assert.deepEqual(conversation.items.map(({ id }) => id), ["early", "late"]);
});

function says(conversation, words, { id = "u", isOver = true } = {}) {
  conversation.receive({ type: "input_audio_buffer.speech_started", item_id: id });
  conversation.receive({ type: "conversation.item.input_audio_transcription.delta", item_id: id, ...words });
  if (isOver) {
    conversation.receive({ type: "input_audio_buffer.speech_stopped", item_id: id });
  }
}

function lose(conversation, now = 1000) {
  return conversation.loseOpen(conversation.openReplies, now);
}

test("a loss after a turn leaves its words to be answered", () => {
  const conversation = new Conversation();
  says(conversation, { text: "What ", stash: "time?" });
  assert.equal(lose(conversation), false);
  assert.deepEqual(conversation.history(), [{ id: "u", role: "user", text: "What time?" }]);
});

test("a loss in the middle of a turn leaves its words to be read, not to be answered", () => {
  const conversation = new Conversation();
  says(conversation, { text: "What ", stash: "time " }, { isOver: false });
  assert.equal(lose(conversation), true);
  assert.equal(conversation.find("u").text, "What time …");
  assert.deepEqual(conversation.history(), []);
});

test("a turn that was lost before its first word is told, and a noise is not", () => {
  const conversation = new Conversation();
  says(conversation, { text: "", stash: "" });
  assert.equal(lose(conversation), true);
  assert.equal(lose(conversation), false);
  conversation.receive({ type: "input_audio_buffer.speech_started", item_id: "noise" });
  conversation.receive({ type: "input_audio_buffer.speech_stopped", item_id: "noise", reason: "turn_invalid" });
  assert.equal(lose(conversation), false);
  assert.deepEqual(conversation.items, []);
});

const LONG = "From the manual: Open the page. Press New key. Then copy it.";

test("a reply that was cut off goes on after the last sentence that was heard in full", () => {
  const conversation = new Conversation();
  conversation.addTyped("u", "How do I create a key?");
  replied(conversation, { text: LONG, ms: 6000 });
  conversation.heardUntil("a", 4000);
  lose(conversation);
  assert.equal(conversation.find("a").text, "From the manual: Open the page. Press New");
  assert.deepEqual(conversation.takeUpCutOff(2000), { heard: "From the manual: Open the page. ", unheard: "Press New key. Then copy it." });
  assert.deepEqual(conversation.history().map(({ text }) => text), ["How do I create a key?", "From the manual: Open the page. "]);
  assert.equal(conversation.find("a").unheard, "Press New key. Then copy it.");
  assert.equal(conversation.takeUpCutOff(2000), null);
});

/** A conversation whose reply was cut off in its first sentence, and is to be given anew. */
function givenAnew() {
  const conversation = new Conversation();
  conversation.addTyped("u", "How do I create a key?");
  replied(conversation, { text: LONG, ms: 6000 });
  conversation.heardUntil("a", 500);
  lose(conversation);
  assert.equal(conversation.takeUpCutOff(2000).heard, "");
  assert.equal(conversation.history().at(-1).role, "user");
  return conversation;
}

test("a reply of which no sentence was heard stays until it is given anew", () => {
  const conversation = givenAnew();
  assert.equal(conversation.find("a").text + conversation.find("a").unheard, LONG);
  conversation.receive({ type: "response.output_item.added", response_id: "s", item: { id: "b", type: "message", role: "assistant" } });
  assert.notEqual(conversation.find("a"), null);
  conversation.receive({ type: "response.audio_transcript.delta", item_id: "b", delta: LONG });
  assert.deepEqual(conversation.items.map(({ id }) => id), ["u", "b"]);
});

test("a reply that was cut off stays when something else was asked before it was given anew", () => {
  for (const ask of [(each) => each.addTyped("v", "What is two plus two?"), (each) => says(each, { text: "And now?", stash: "" }, { id: "v" })]) {
    const conversation = givenAnew();
    ask(conversation);
    conversation.receive({ type: "response.audio_transcript.delta", item_id: "b", delta: "4." });
    assert.deepEqual(conversation.items.map(({ id }) => id), ["u", "a", "v", "b"]);
    assert.equal(conversation.find("a").unheard !== "", true);
  }
});

test("words whose sound never came were not heard", () => {
  const conversation = new Conversation();
  conversation.receive({ type: "response.audio_transcript.delta", item_id: "a", delta: LONG });
  lose(conversation);
  assert.deepEqual([conversation.find("a").text, conversation.find("a").unheard], ["", LONG]);
});

test("a reply is not taken up when somebody spoke since, when it is long ago, or when the person ended it", () => {
  const cutOff = () => {
    const conversation = new Conversation();
    replied(conversation, { text: LONG, ms: 6000 });
    conversation.heardUntil("a", 4000);
    return conversation;
  };
  const spokenSince = cutOff();
  lose(spokenSince);
  spokenSince.addNote("You were not heard.");
  assert.notEqual(spokenSince.takeUpCutOff(2000), null);
  lose(spokenSince);
  spokenSince.addTyped("u", "Never mind.");
  assert.equal(spokenSince.takeUpCutOff(2000), null);
  const longAgo = cutOff();
  lose(longAgo);
  assert.equal(longAgo.takeUpCutOff(1000 + 121000), null);
  const ended = cutOff();
  ended.endOpen();
  assert.equal(ended.takeUpCutOff(2000), null);
  assert.equal(ended.find("a").unheard, " key. Then copy it.");
});

test("the page's own notes are not part of what was said", () => {
  const conversation = new Conversation();
  conversation.addNote("What you said was not heard.");
  assert.deepEqual([conversation.items.map(({ role }) => role), conversation.history()], [["note"], []]);
});

test("places in texts without spaces, and between characters of several units, are words' ends", () => {
  const text = "今天天气很好，我们去公园散步吧。";
  const spoken = text.slice(0, spokenChars({ text, audioMs: 1600, isComplete: true }, 700));
  assert.ok(spoken.length >= 7 && spoken.length < 12, spoken);
  const family = "👩‍👩‍👧‍👦 yes";
  assert.equal(family.slice(0, spokenChars({ text: family, audioMs: 1500, isComplete: true }, 300)), "👩‍👩‍👧‍👦");
  assert.equal(wholeSentences("今天天气很好。我们去公园。", 9), 7);
  assert.equal(wholeSentences("One. Two. Three.", 9), 9);
  assert.equal(wholeSentences("No end", 3), 0);
});

test("deleted items disappear and tool calls are kept apart", () => {
  const conversation = new Conversation();
  replied(conversation);
  conversation.receive({ type: "conversation.item.deleted", item_id: "a" });
  assert.deepEqual(conversation.items, []);
  conversation.receive({ type: "response.output_item.added", response_id: "r", item: { id: "f", type: "function_call", name: "" } });
  conversation.receive({ type: "response.function_call_arguments.done", item_id: "f", name: "lamp", arguments: '{"on":true}' });
  assert.deepEqual(conversation.find("f").tool, { name: "lamp", arguments: '{"on":true}' });
  assert.deepEqual(conversation.history(), []);
});

test("metrics land on the reply they measure", () => {
  const conversation = new Conversation();
  replied(conversation);
  conversation.receive({ type: "response.done", response: { id: "r", status: "completed", metrics: { first_audio_ms: 400 } } });
  conversation.setPlayout("a", 30);
  assert.deepEqual([conversation.find("a").metrics.first_audio_ms, conversation.find("a").playoutMs], [400, 30]);
  conversation.receive({ type: "response.output_item.added", response_id: "t", item: { id: "b", type: "message", role: "assistant" } });
  conversation.receive({ type: "response.done", response: { id: "t", status: "completed", metrics: { first_audio_ms: 99 } } });
  assert.equal(conversation.find("b").metrics, null, "a timer rings, which answers nothing");
});

test("positions in sound become positions in text at ends of words", () => {
  const text = "one two three four";
  assert.equal(spokenChars({ text, audioMs: 1800, isComplete: true }, 0), 0);
  assert.equal(text.slice(0, spokenChars({ text, audioMs: 1800, isComplete: true }, 500)), "one two");
  assert.equal(spokenChars({ text, audioMs: 1800, isComplete: true }, Infinity), text.length);
  const usual = { text, audioMs: 200, isComplete: false, msPerChar: 100 };
  assert.equal(text.slice(0, spokenChars(usual, 500)), "one two");
});

test("where the times of words are known, the caption keeps to them", () => {
  const conversation = new Conversation();
  replied(conversation, { text: "It costs five dollars. Nothing more." });
  const times = [["It", 100, 200], [" costs", 900, 1000], [" five dollars.", 1000, 1600]];
  const words = times.map(([text, start_ms, end_ms]) => ({ text, start_ms, end_ms }));
  conversation.receive({ type: "response.audio.words", item_id: "a", words: words.slice(0, 2) });
  conversation.receive({ type: "response.audio.words", item_id: "a", words: words.slice(2) });
  conversation.receive({ type: "response.audio.words", item_id: "unknown", words });
  const spoken = (ms) => {
    conversation.heardUntil("a", ms);
    return conversation.find("a").spokenSplit[0];
  };
  assert.deepEqual([50, 120, 880, 910].map(spoken), ["", "It", "It", "It costs"]);
  assert.deepEqual([1100, 1500, 1600].map(spoken), ["It costs five", "It costs five dollars.", "It costs five dollars."]);
  assert.deepEqual([1650, 1990].map(spoken), ["It costs five dollars. Nothing", "It costs five dollars. Nothing more."]);
});

test("stages are what each added to the one before", () => {
  const marks = { end_of_turn_ms: 320, recognition_ms: 300, first_token_ms: 330, first_audio_ms: 360 };
  assert.deepEqual(stages(marks, 40).map(({ name, ms }) => [name, ms]), [["turn", 320], ["words", 0], ["thought", 10], ["voice", 30], ["playback", 40]]);
  assert.deepEqual(stages({ end_of_turn_ms: null, first_token_ms: 5, first_audio_ms: 9 }, null).map(({ ms }) => ms), [5, 4]);
});

test("the waterfall says which of several models replied", () => {
  assert.equal(repliedBy({ first_audio_ms: 9, served_by: "acme/large" }), "replied by acme/large");
  assert.equal(repliedBy({ first_audio_ms: 9 }), "");
});

test("the page notices when it hears itself, and not when it is answered", () => {
  const spoken = "Quick Start: run make run and open the page in your browser.";
  assert.ok(isEcho("run make run and open the page", spoken));
  assert.ok(!isEcho("how do I open a second page", spoken));
  assert.ok(!isEcho("the page", spoken));
});

test("who says the words of a reply is accused only where the server found the reply in the sound", () => {
  const words = "how do I interrupt you";
  const echo = new Echo();
  echo.speechStarted({ text: "Ask me something, such as: how do ", unheard: "I interrupt you?" });
  echo.speechStopped({ echo: true });
  assert.ok(echo.isIn(words));
  echo.speechStopped({});
  assert.ok(!echo.isIn(words));
  echo.speechStarted(null);
  echo.speechStopped({ echo: true });
  assert.ok(!echo.isIn(words));
});

test("a long conversation goes on from its latest messages", () => {
  const conversation = new Conversation();
  for (let index = 0; index < 1500; index += 1) {
    conversation.addTyped(`u${index}`, `message ${index}`);
  }
  const history = conversation.history();
  assert.equal(history.length, 200);
  assert.equal(history.at(-1).text, "message 1499");
});

test("a reply on a media track is complete when it was heard to the end, not when it was sent", () => {
  const conversation = new Conversation();
  conversation.receive({ type: "response.output_item.added", response_id: "r", item: { id: "a", type: "message", role: "assistant" } });
  conversation.followSound("a");
  conversation.receive({ type: "response.audio_transcript.delta", item_id: "a", delta: "It is five past eight." });
  conversation.addAudio("a", new Int16Array(48000), 48000);
  conversation.heardUntil("a", 700);
  conversation.receive({ type: "response.audio.done", item_id: "a" });
  conversation.receive({ type: "response.done", response: { id: "r", status: "completed", output: [{ id: "a" }] } });
  assert.equal(conversation.find("a").spokenSplit[0], "It is five");
  conversation.addAudio("a", new Int16Array(24000), 48000);
  assert.equal(conversation.find("a").audioMs, 1500);
  conversation.heardToTheEnd("a");
  assert.deepEqual(conversation.find("a").spokenSplit, ["It is five past eight.", ""]);
});

test("what is said aside is shown, not told to the next session, and never taken up", () => {
  const conversation = new Conversation();
  const say = (response, id, text) => {
    conversation.receive({ type: "response.created", response });
    conversation.receive({ type: "response.output_item.added", response_id: response.id, item: { id, type: "message", role: "assistant" } });
    conversation.receive({ type: "response.text.delta", item_id: id, delta: text });
  };
  say({ id: "r1", conversation_id: "c" }, "a", "Four.");
  say({ id: "r2", conversation_id: null }, "b", "Our time is nearly up.");
  conversation.loseOpen(conversation.openReplies, Date.now());
  assert.deepEqual(conversation.items.map(({ id }) => id), ["a", "b"]);
  assert.deepEqual(conversation.history().map(({ id }) => id), ["a"]);
  assert.equal(conversation.takeUpCutOff().heard, "Four.");
});

test("calls are asked about one by one, with all that could be hidden in them", () => {
  const shown = [];
  const told = [];
  let isLive = false;
  const notices = { show: (notice) => shown.push(notice), remove: () => {} };
  const approvals = new Approvals(notices, (id, isAllowed) => isLive && told.push([id, isAllowed]));
  approvals.ask({ id: "1", server_label: "home", name: "unlock", arguments: '{"door": "\u202efront"}' });
  approvals.ask({ id: "2", server_label: "home", name: "ring", arguments: "{}" });
  assert.equal(shown.length, 1);
  assert.equal(shown[0].details, '{\n  "door": "\\u{202e}front"\n}');
  approvals.decide(true); // in an outage
  assert.deepEqual([told, shown.at(-1).values.tool], [[], "unlock"]);
  isLive = true;
  approvals.decide(true);
  assert.deepEqual([shown.at(-1).values.tool, shown.at(-1).details], ["ring", ""]);
  approvals.decide(false);
  approvals.decide(false);
  assert.deepEqual(told, [["1", true], ["2", false]]);
});
