// What was said, item by item, as the server's events tell it. Knows no socket and no sound.

import { USUAL_MS_PER_CHAR, spokenChars } from "./alignment.js";
import { SERVER } from "./events.js";

const REMEMBERED_MESSAGES = 200; // as much as models keep; the server refuses a flood of more
const KEPT_AUDIO_SAMPLES = 24000 * 60 * 8; // for "play again"; the oldest replies lose their sound first

/** One message or tool call. `state` is live, done, interrupted or failed. */
class Item {
  constructor(id, role) {
    this.id = id;
    this.role = role;
    this.at = new Date();
    this.text = "";
    this.stash = ""; // words of the caller that may still change
    this.unheard = ""; // what the assistant had left to say when it was interrupted
    this.state = "live";
    this.isTyped = false;
    this.metrics = null;
    this.playoutMs = null;
    this.tool = null; // {name, arguments}
    this.audio = { pieces: [], samples: 0, rateHz: 24000, isComplete: false, isFollowed: false };
    this.msPerChar = USUAL_MS_PER_CHAR;
    this.playedMs = 0;
  }

  get audioMs() {
    return (this.audio.samples * 1000) / this.audio.rateHz;
  }

  /** Text split where the voice is now: [spoken, not yet spoken]. */
  get spokenSplit() {
    if (this.role !== "assistant" || this.audio.samples === 0 || this.state === "interrupted") {
      return [this.text, ""];
    }
    const { text, audioMs, msPerChar } = this;
    const chars = spokenChars({ text, audioMs, msPerChar, isComplete: this.audio.isComplete }, this.playedMs);
    return [this.text.slice(0, chars), this.text.slice(chars)];
  }

  get isEmpty() {
    return !this.text && !this.stash && !this.unheard && !this.tool;
  }
}

/** Events: `item` (detail: the item that appeared or changed), `removed` (detail: id), `cleared`. */
export class Conversation extends EventTarget {
  #items = [];
  #messageByResponse = new Map();
  #msPerChar = USUAL_MS_PER_CHAR; // how fast the voice spoke last

  get items() {
    return this.#items.filter((item) => !item.isEmpty);
  }

  find(id) {
    return this.#items.find((item) => item.id === id) ?? null;
  }

  /** The last message of one side that has words, or null. */
  last(role) {
    return this.#items.findLast((item) => item.role === role && !item.isEmpty) ?? null;
  }

  clear() {
    this.#items = [];
    this.#messageByResponse.clear();
    this.dispatchEvent(new Event("cleared"));
  }

  /** The person typed `text`. */
  addTyped(id, text) {
    const item = this.#add(id, "user");
    item.text = text;
    item.state = "done";
    item.isTyped = true;
    this.#changed(item);
  }

  /** The sound of an item comes as it is heard: it is complete when the voice has reached its end, and not before. */
  followSound(id) {
    this.#add(id, "assistant").audio.isFollowed = true;
  }

  /** Sound of an assistant item arrived. */
  addAudio(id, pcm, rateHz) {
    const item = this.find(id);
    if (item && (item.state === "live" || (item.state === "done" && item.audio.isFollowed))) {
      item.audio.rateHz = rateHz;
      item.audio.pieces.push(pcm);
      item.audio.samples += pcm.length;
      this.#forgetOldAudio();
    }
  }

  /** The voice has reached this place of an item. */
  heardUntil(id, playedMs) {
    const item = this.find(id);
    if (item) {
      item.playedMs = playedMs;
      this.#changed(item);
    }
  }

  /** The voice has reached the end of an item. */
  heardToTheEnd(id) {
    const item = this.find(id);
    if (item) {
      item.audio.isComplete = true;
      this.#learnPace(item);
    }
    this.heardUntil(id, Infinity);
  }

  setPlayout(id, playoutMs) {
    const item = this.find(id);
    if (item) {
      item.playoutMs = playoutMs;
      this.#changed(item);
    }
  }

  /** The reply stopped here: what follows the voice's place was not heard. The server's own word replaces this guess. */
  cutShort(id, heardMs) {
    const item = this.find(id);
    if (item?.role === "assistant" && item.state !== "interrupted") {
      item.playedMs = heardMs;
      [item.text, item.unheard] = item.spokenSplit;
      item.state = "interrupted";
      this.#changed(item);
    }
  }

  /** The connection is gone: nothing will complete what is still open. */
  interruptOpen() {
    for (const item of this.#items.filter(({ state }) => state === "live")) {
      if (item.role === "assistant" && item.audio.samples > 0) {
        this.cutShort(item.id, item.playedMs);
      } else {
        item.text += item.stash;
        item.stash = "";
        item.state = "done";
        this.#changed(item);
      }
    }
  }

  /** What a new session must be told so that the assistant remembers: [{id, role, text}]. */
  history() {
    return this.items
      .filter(({ role, text }) => (role === "user" || role === "assistant") && text.trim() !== "")
      .slice(-REMEMBERED_MESSAGES)
      .map(({ id, role, text }) => ({ id, role, text }));
  }

  /** Take one server event; what is not about items is ignored. */
  receive(event) {
    switch (event.type) {
      case SERVER.SPEECH_STARTED:
        this.#add(event.item_id, "user");
        break;
      case SERVER.ITEM_CREATED:
        this.#created(event);
        break;
      case SERVER.ITEM_DELETED:
        this.#remove(event.item_id);
        break;
      case SERVER.ITEM_TRUNCATED:
        this.#truncated(event);
        break;
      case SERVER.TRANSCRIPTION_DELTA:
        this.#update(this.#add(event.item_id, "user"), { text: event.text, stash: event.stash });
        break;
      case SERVER.TRANSCRIPTION_COMPLETED:
        this.#update(this.#add(event.item_id, "user"), { text: event.transcript, stash: "", state: "done" });
        break;
      case SERVER.TRANSCRIPTION_FAILED:
        this.#update(this.#add(event.item_id, "user"), { stash: "", state: "failed" });
        break;
      case SERVER.OUTPUT_ITEM_ADDED:
        this.#outputAdded(event);
        break;
      case SERVER.AUDIO_TRANSCRIPT_DELTA:
      case SERVER.TEXT_DELTA:
        this.#spoke(event);
        break;
      case SERVER.AUDIO_DONE:
        this.#audioDone(event);
        break;
      case SERVER.FUNCTION_ARGUMENTS_DONE:
        this.#update(this.find(event.item_id), { tool: { name: event.name, arguments: event.arguments } });
        break;
      case SERVER.RESPONSE_DONE:
        this.#responseDone(event.response);
        break;
      default:
    }
  }

  #created({ item, previous_item_id: previousId }) {
    const role = item.type === "message" ? item.role : "tool";
    const known = this.find(item.id);
    const ours = known ?? this.#add(item.id, role);
    this.#place(ours, previousId);
    const words = (item.content ?? []).map((part) => part.text ?? part.transcript ?? "").join("");
    if (!known && words) {
      this.#update(ours, { text: words, state: "done" });
    }
  }

  #outputAdded({ response_id: responseId, item }) {
    const ours = this.#add(item.id, item.type === "message" ? "assistant" : "tool");
    if (item.type === "message") {
      this.#messageByResponse.set(responseId, item.id);
    } else {
      this.#update(ours, { tool: { name: item.name ?? "", arguments: item.arguments ?? "" } });
    }
  }

  #spoke({ item_id: id, delta }) {
    const item = this.#add(id, "assistant");
    if (item.state === "live") {
      item.text += delta;
      this.#changed(item);
    }
  }

  #audioDone({ item_id: id }) {
    const item = this.find(id);
    if (item && !item.audio.isFollowed) {
      item.audio.isComplete = true;
      this.#changed(item);
    }
  }

  #truncated({ item_id: id, transcript, unheard }) {
    const item = this.find(id);
    if (item) {
      const state = unheard ? "interrupted" : item.state === "live" ? "live" : "done";
      this.#update(item, { text: transcript, unheard, state });
    }
  }

  #responseDone(response) {
    const item = this.find(this.#messageByResponse.get(response.id));
    this.#messageByResponse.delete(response.id);
    if (!item) {
      return;
    }
    item.metrics = response.metrics ?? null;
    item.audio.isComplete ||= !item.audio.isFollowed;
    if (item.state === "live") {
      item.state = { failed: "failed", cancelled: "interrupted" }[response.status] ?? "done";
    }
    this.#learnPace(item);
    this.#changed(item);
  }

  #learnPace(item) {
    if (item.state === "done" && item.audio.isComplete && item.audioMs > 1000) {
      this.#msPerChar = item.audioMs / item.text.length;
    }
  }

  #add(id, role) {
    let item = this.find(id);
    if (!item) {
      item = new Item(id, role);
      item.msPerChar = this.#msPerChar;
      this.#items.push(item);
    }
    return item;
  }

  #place(item, previousId) {
    const previous = this.#items.findIndex(({ id }) => id === previousId);
    const current = this.#items.indexOf(item);
    if (previous > current) {
      this.#items.splice(current, 1);
      this.#items.splice(previous, 0, item);
      this.#changed(item);
    }
  }

  #remove(id) {
    this.#items = this.#items.filter((item) => item.id !== id);
    this.dispatchEvent(new CustomEvent("removed", { detail: id }));
  }

  #update(item, fields) {
    if (item) {
      Object.assign(item, fields);
      this.#changed(item);
    }
  }

  #changed(item) {
    this.dispatchEvent(new CustomEvent("item", { detail: item }));
  }

  #forgetOldAudio() {
    let kept = 0;
    for (const item of this.#items.toReversed()) {
      kept += item.audio.samples;
      if (kept > KEPT_AUDIO_SAMPLES && item.state !== "live") {
        item.audio.pieces = [];
      }
    }
  }
}
