// One message, tool call or note of a conversation, and how much of it was heard.

import { USUAL_MS_PER_CHAR, spokenChars } from "./alignment.js";
import { t } from "./words.js";

/**
 * `role` is user, assistant, system, tool or note (a word of the page's own, which no model reads); `state` is live,
 * done, interrupted or failed.
 */
const ROLES = ["user", "assistant", "system", "tool", "note"];

/** "llama3.2 · may be wrong", "Skill", or nothing where it is not known who wrote a reply. */
export function writtenBy(author) {
  const names = { skill: t("Skill"), document: t("Document"), model: author?.name };
  const name = names[author?.kind] ?? "";
  return name && author.may_be_wrong ? t("{name} · may be wrong", { name }) : name;
}

export class Item {
  /** An item as it was kept, or null for what is none. */
  static fromRecord(record) {
    const { id, role, at, text, unheard, tool } = record ?? {};
    if (typeof id !== "string" || !ROLES.includes(role) || [text, unheard].some((words) => typeof words !== "string")) {
      return null;
    }
    const when = new Date(at);
    const item = new Item(id, role, Number.isNaN(when.getTime()) ? new Date() : when);
    item.text = text;
    item.unheard = unheard;
    item.state = record.state === "interrupted" || record.state === "failed" ? record.state : "done";
    item.isTyped = record.isTyped === true;
    item.isOver = true;
    item.isUnanswerable = record.isUnanswerable === true;
    item.isPast = record.isPast === true;
    item.cutOffAt = typeof record.cutOffAt === "number" ? record.cutOffAt : null;
    item.metrics = typeof record.metrics === "object" ? record.metrics : null;
    item.author = typeof record.author?.kind === "string" ? record.author : null;
    item.playoutMs = typeof record.playoutMs === "number" ? record.playoutMs : null;
    item.tool = typeof tool?.name === "string" ? { name: tool.name, arguments: String(tool.arguments) } : null;
    return item;
  }

  constructor(id, role, at = new Date()) {
    this.id = id;
    this.role = role;
    this.at = at;
    this.text = "";
    this.stash = ""; // words of the caller that may still change
    this.unheard = ""; // what the assistant had left to say when it was interrupted
    this.state = "live";
    this.isTyped = false;
    this.isOver = false; // the caller has finished this turn, whether or not its words are known
    this.isSpoken = false; // the assistant's words are to be heard
    this.isUnanswerable = false; // only a part of what the caller said, or said aside: no part of what models read
    this.isGivenAnew = false; // cut off, and another reply is to come in its place
    this.isPast = false; // part of a conversation that is over
    this.cutOffAt = null; // when the connection was lost in the middle of the reply (epoch ms)
    this.metrics = null;
    this.author = null; // {kind, name, may_be_wrong}: who wrote a reply
    this.playoutMs = null;
    this.tool = null; // {name, arguments}
    this.audio = { pieces: [], samples: 0, rateHz: 24000, isComplete: false, isFollowed: false, resampler: null };
    this.words = []; // where its words are in its audio: {end, startMs, endMs}, `end` in characters
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
    const { text, audioMs, words, msPerChar } = this;
    const chars = spokenChars({ text, audioMs, words, msPerChar, isComplete: this.audio.isComplete }, this.playedMs);
    return [this.text.slice(0, chars), this.text.slice(chars)];
  }

  /** Whether the assistant's words are known and none of their sound. */
  get isMute() {
    return this.isSpoken && this.audio.samples === 0;
  }

  get isEmpty() {
    return !this.text && !this.stash && !this.unheard && !this.tool;
  }

  /** What changes when nothing will complete the item any more, because of the loss of a connection at `now` if any. */
  closing(now = null) {
    if (this.role === "assistant") {
      const [text, unheard] = this.isMute ? ["", this.text] : this.spokenSplit;
      return { text, unheard, state: "interrupted", cutOffAt: now };
    }
    const words = this.text + this.stash;
    const isCut = this.role === "user" && !(this.isOver && words);
    return { text: isCut && words ? `${words.trimEnd()} …` : words, stash: "", state: "done", isUnanswerable: isCut };
  }

  /** The item as it is kept when its page closes at `now`, with no text longer than `largest` characters. */
  toRecord(now, largest) {
    const isLive = this.state === "live";
    const isHeardInPart = this.state === "done" && this.spokenSplit[1] !== "";
    const item = { ...this, ...(isLive || isHeardInPart ? this.closing(isLive ? now : null) : {}) };
    const { id, role, at, state, isTyped, isUnanswerable, isPast, cutOffAt, metrics, author, playoutMs } = item;
    const tool = item.tool && { name: item.tool.name, arguments: shortened(item.tool.arguments, largest) };
    const [text, unheard] = [shortened(item.text, largest), shortened(item.unheard, largest)];
    const about = { isTyped, isUnanswerable, isPast, cutOffAt, metrics, author, playoutMs };
    return { id, role, at, state, text, unheard, tool, ...about };
  }
}

/** `text`, or as many of its first characters as fit, none of them torn apart. */
function shortened(text, largest) {
  return text.length <= largest ? text : `${text.slice(0, largest).replace(/[\uD800-\uDBFF]$/, "")} …`;
}
