// What was said, item by item, as the server's events tell it. Knows no socket and no sound.

import { USUAL_MS_PER_CHAR, wholeSentences } from "./alignment.js";
import { SERVER, identifier } from "./events.js";
import { addPiece, cutPieces, forgetOldest } from "./item_audio.js";
import { Item } from "./item.js";
import { Reminders } from "./reminders.js";

const REMEMBERED_MESSAGES = 200; // as much as models keep; the server refuses a flood of more
const SAID_AGAIN_WITHIN_MS = 120000; // who comes back later is not startled by the end of a sentence

/**
 * Events: `item` (detail: the item that appeared or changed), `removed` (detail: id) when nothing of it is left,
 * `cleared`, `source` (detail: the server's event), `approval` (detail: the call that the assistant asks for, as the
 * server has it).
 */
export class Conversation extends EventTarget {
  #items = [];
  #messageByResponse = new Map();
  #asides = new Set(); // ids of responses that are no part of the conversation for models
  #msPerChar = USUAL_MS_PER_CHAR; // how fast the voice spoke last

  reminders = new Reminders();

  get items() {
    return this.#items.filter((item) => !item.isEmpty);
  }

  find(id) {
    return this.#items.find((item) => item.id === id) ?? null;
  }

  /** The last message of one side that has words, in the conversation that goes on, or null. */
  last(role) {
    return this.#items.findLast((item) => item.role === role && !item.isEmpty && !item.isPast) ?? null;
  }

  clear() {
    this.#items = [];
    this.#messageByResponse.clear();
    this.reminders.restore([]);
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
      addPiece(item.audio, pcm, rateHz);
      forgetOldest(this.#items);
    }
  }

  /** The sound of an item that was cut comes again from where it was heard, at its pace (`isFollowed`) or ahead of it. */
  goOn(id, heardMs, { isFollowed }) {
    const item = this.find(id);
    if (item) {
      cutPieces(item.audio, heardMs);
      Object.assign(item.audio, { isFollowed: isFollowed || item.state === "done", isComplete: false });
      this.heardUntil(id, heardMs);
    }
  }

  /** The sound of an item that is followed comes again from here. */
  goBack(id, startMs) {
    const item = this.find(id);
    if (item) {
      cutPieces(item.audio, startMs);
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
      this.#update(item, item.closing());
    }
  }

  /** A word of the page's own between the items, such as that something was not heard. */
  addNote(text, { isPast = false } = {}) {
    const item = this.#add(identifier("note"), "note");
    this.#update(item, { text, isPast, state: "done" });
  }

  /** Items of before; of a conversation that `isOver` they can only be read. */
  restore(items, { isOver }) {
    this.#items.push(...items);
    for (const item of items) {
      this.#update(item, { isPast: item.isPast || isOver });
    }
  }

  /** Replies that are not complete. */
  get openReplies() {
    return this.#items.filter(({ role, state }) => role === "assistant" && state === "live");
  }

  /**
   * The connection is gone: nothing will complete what is still open. `replies` were open when it went; what was heard
   * of them is known. Returns whether something that the caller was saying is lost.
   */
  loseOpen(replies, now = Date.now()) {
    for (const item of replies) {
      this.cutShort(item.id, item.playedMs);
      item.cutOffAt = now;
    }
    return this.#closeOpen();
  }

  /** The caller has ended the session. */
  endOpen() {
    for (const item of this.openReplies) {
      this.cutShort(item.id, item.playedMs);
    }
    this.#closeOpen();
    this.reminders.dropDue();
  }

  #closeOpen() {
    let isSpeechLost = false;
    for (const item of this.#items.filter(({ state }) => state === "live")) {
      const closing = item.closing();
      isSpeechLost ||= closing.isUnanswerable ?? false;
      this.#update(item, closing);
    }
    return isSpeechLost;
  }

  /**
   * The reply that the loss of a connection cut off just now, with nothing said since, goes back to the end of the last
   * sentence that was heard in full. Where there is none, it stays as it is until another comes in its place. Returns
   * whether there is one to go on with: {heard, unheard}, or null.
   */
  takeUpCutOff(now = Date.now()) {
    const last = this.#items.findLast(
      (item) => !item.isEmpty && (item.role === "user" || (item.role === "assistant" && !item.isUnanswerable)),
    );
    if (!last || last.isPast || last.cutOffAt === null || now - last.cutOffAt > SAID_AGAIN_WITHIN_MS) {
      return null;
    }
    const whole = last.text + last.unheard;
    const end = wholeSentences(whole, last.text.length);
    const [heard, unheard] = [whole.slice(0, end), whole.slice(end)];
    if (heard.trim()) {
      this.#update(last, { text: heard, unheard, cutOffAt: null });
    } else {
      last.isGivenAnew = true;
    }
    return { heard, unheard };
  }

  /** What a new session must be told so that the assistant remembers: [{id, role, text}]. */
  history() {
    return this.items
      .filter(({ role, text }) => ["user", "assistant"].includes(role) && text.trim() !== "")
      .filter(({ isUnanswerable, isGivenAnew, isPast }) => !isUnanswerable && !isGivenAnew && !isPast)
      .slice(-REMEMBERED_MESSAGES)
      .map(({ id, role, text }) => ({ id, role, text }));
  }

  /** Take one server event; what is not about items is ignored. */
  receive(event) {
    switch (event.type) {
      case SERVER.SPEECH_STARTED:
        Object.assign(this.#add(event.item_id, "user"), { state: "live", isOver: false }); // a known one goes on
        break;
      case SERVER.SPEECH_STOPPED:
        this.#update(this.find(event.item_id), event.reason === "turn_invalid" ? { stash: "", state: "done" } : { isOver: true });
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
      case SERVER.RESPONSE_CREATED:
        if (event.response.conversation_id === null) {
          this.#asides.add(event.response.id);
        }
        break;
      case SERVER.OUTPUT_ITEM_ADDED:
        this.#outputAdded(event);
        break;
      case SERVER.AUDIO_TRANSCRIPT_DELTA:
      case SERVER.TEXT_DELTA:
        this.#wrote(event);
        break;
      case SERVER.AUDIO_WORDS:
        this.#timed(event);
        break;
      case SERVER.AUDIO_DONE:
        this.#audioDone(event);
        break;
      case SERVER.FUNCTION_ARGUMENTS_DONE:
        this.#update(this.find(event.item_id), { tool: { name: event.name, arguments: event.arguments } });
        break;
      case SERVER.SOURCE_ADDED:
        this.dispatchEvent(new CustomEvent("source", { detail: event }));
        break;
      case SERVER.REMINDERS_UPDATED:
        this.reminders.update(event.reminders, this.last("user")?.id ?? "");
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
    ours.isOver = true;
    const words = (item.content ?? []).map((part) => part.text ?? part.transcript ?? "").join("");
    if (!known && words) {
      this.#update(ours, { text: words, state: "done" });
    }
  }

  #outputAdded({ response_id: responseId, item }) {
    const ours = this.#add(item.id, item.type === "message" ? "assistant" : "tool");
    if (item.type === "message") {
      this.#messageByResponse.set(responseId, item.id);
      ours.author = item.author ?? null;
      ours.isUnanswerable = this.#asides.delete(responseId);
    } else {
      this.#update(ours, { tool: { name: item.name ?? "", arguments: item.arguments ?? "" } });
      if (item.type === "mcp_approval_request") {
        this.dispatchEvent(new CustomEvent("approval", { detail: item }));
      }
    }
  }

  #wrote({ type, item_id: id, delta }) {
    this.#replaceGivenAnew();
    const item = this.#add(id, "assistant");
    item.isSpoken = type === SERVER.AUDIO_TRANSCRIPT_DELTA;
    if (item.state === "live") {
      item.text += delta;
      this.#changed(item);
    }
  }

  /** A reply begins: it comes in the place of one that is given anew, unless it is to something said since. */
  #replaceGivenAnew() {
    const old = this.#items.findLast(({ isGivenAnew }) => isGivenAnew);
    if (!old) {
      return;
    }
    const since = this.#items.slice(this.#items.indexOf(old) + 1);
    old.isGivenAnew = false;
    if (!since.some((item) => item.role === "user" && !item.isEmpty)) {
      this.#remove(old.id);
    }
  }

  #timed({ item_id: id, words }) {
    const item = this.find(id);
    let end = item?.words.at(-1)?.end ?? 0;
    for (const { text, start_ms: startMs, end_ms: endMs } of words) {
      end += text.length;
      item?.words.push({ end, startMs, endMs });
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
    const before = this.#items.slice(0, this.#items.indexOf(item)).findLast(({ role }) => role === "user" || role === "assistant");
    item.metrics = before?.role === "assistant" ? null : (response.metrics ?? null); // a timer that rings is no reply
    item.author = response.output?.find(({ id }) => id === item.id)?.author ?? item.author;
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
      const wasEmpty = item.isEmpty;
      Object.assign(item, fields);
      if (item.isEmpty && !wasEmpty) {
        this.dispatchEvent(new CustomEvent("removed", { detail: item.id })); // it came to nothing: no view shows it any more
      } else {
        this.#changed(item);
      }
    }
  }

  #changed(item) {
    this.dispatchEvent(new CustomEvent("item", { detail: item }));
  }
}
