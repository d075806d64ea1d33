// Everything said so far, item by item: read, play again, copy, save.

import { byId, download, icon, make } from "./dom.js";
import { stageBar, stages, total } from "./waterfall.js";
import { pretty } from "../approvals.js";
import { WHO, asJson, asText } from "../export.js";
import { writtenBy } from "../item.js";
import { seconds, t, timeOfDay } from "../words.js";

export class Transcript {
  #list = byId("turns");
  #empty = byId("turns-empty");
  #conversation;
  #sound;
  #rows = new Map();

  constructor(conversation, sound, { onNew }) {
    this.#conversation = conversation;
    this.#sound = sound;
    conversation.addEventListener("item", ({ detail }) => this.#show(detail));
    conversation.addEventListener("removed", ({ detail }) => this.#remove(detail));
    conversation.addEventListener("cleared", () => this.#clear());
    for (const type of ["item", "removed", "cleared"]) {
      conversation.addEventListener(type, () => this.#allow());
    }
    byId("copy-transcript").addEventListener("click", ({ currentTarget }) => this.#copy(currentTarget));
    byId("export-text").addEventListener("click", () => download(fileName("txt"), "text/plain", asText(this.#conversation.items)));
    byId("export-json").addEventListener("click", () => download(fileName("json"), "application/json", asJson(this.#conversation.items)));
    byId("export-wav").addEventListener("click", () => {
      download(fileName("wav"), "audio/wav", this.#sound.recording.toWav());
    });
    byId("new-conversation").addEventListener("click", onNew);
  }

  /** What needs something that was said. */
  #allow() {
    for (const id of ["copy-transcript", "export-text", "export-json", "new-conversation"]) {
      byId(id, HTMLButtonElement).disabled = this.#rows.size === 0;
    }
  }

  #show(item) {
    if (item.isEmpty) {
      return;
    }
    this.#empty.hidden = true;
    const isAtEnd = this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < 80;
    const row = this.#rows.get(item.id) ?? this.#add(item);
    row.dataset.state = item.state;
    row.dataset.role = item.role;
    const words = [item.text, item.stash, item.unheard, item.state, item.metrics?.first_audio_ms, item.playoutMs, writtenBy(item.author)];
    const signature = [...words, item.audio.isComplete].join("\u0000");
    if (row.dataset.signature !== signature) {
      row.dataset.signature = signature;
      row.replaceChildren(this.#head(item), ...this.#body(item));
    }
    this.#order(item, row);
    if (isAtEnd) {
      this.#list.scrollTop = this.#list.scrollHeight;
    }
  }

  #add(item) {
    const row = make("li", "turn");
    row.dataset.item = item.id;
    this.#rows.set(item.id, row);
    this.#list.append(row);
    return row;
  }

  #order(item, row) {
    const items = this.#conversation.items;
    const next = this.#rows.get(items[items.indexOf(item) + 1]?.id) ?? null;
    if (row.nextElementSibling !== next) {
      this.#list.insertBefore(row, next);
    }
  }

  #head(item) {
    const head = make("p", "turn-head", make("span", "turn-who", WHO[item.role] ?? item.role));
    const time = make("time", "", timeOfDay(item.at));
    time.dateTime = item.at.toISOString();
    head.append(time);
    if (item.isTyped) {
      head.append(t("typed"));
    }
    const author = writtenBy(item.author);
    if (author) {
      head.append(make("span", "turn-author", author));
    }
    if (item.metrics?.first_audio_ms != null) {
      const totalMs = item.metrics.first_audio_ms + (item.playoutMs ?? 0);
      const latency = make("span", "developer", seconds(totalMs, 2));
      latency.title = total(item.metrics, item.playoutMs);
      head.append(latency);
    }
    if (item.audio.isComplete && item.audio.pieces.length > 0) {
      const replay = make("button", "turn-replay", icon("play"));
      replay.type = "button";
      replay.setAttribute("aria-label", t("Play again: {words}", { words: item.text.slice(0, 60) }));
      replay.addEventListener("click", () => this.#replay(item, replay));
      head.append(replay);
    }
    return head;
  }

  #body(item) {
    if (item.tool) {
      return [make("p", "turn-text", item.tool.name), make("pre", "", pretty(item.tool.arguments))];
    }
    const text = make("p", "turn-text", item.text, make("span", "stash", item.stash));
    text.dir = "auto";
    if (item.unheard) {
      text.append(make("del", "unheard", item.unheard));
    }
    return item.metrics ? [text, this.#latency(item)] : [text];
  }

  /** Where this turn's time went: a bar for the eye, words for the pointer and for screen readers. */
  #latency(item) {
    const parts = stages(item.metrics, item.playoutMs);
    const told = parts.map(({ title, ms }) => `${t(title)} ${ms} ms`).join(", ");
    const words = `${total(item.metrics, item.playoutMs)}: ${told}`;
    const figure = make("div", "turn-latency developer", stageBar(parts), make("span", "visually-hidden", words));
    figure.title = words;
    return figure;
  }

  async #replay(item, button) {
    button.disabled = true;
    await this.#sound.replay(item.audio.pieces, item.audio.rateHz);
    button.disabled = false;
  }

  #remove(id) {
    this.#rows.get(id)?.remove();
    this.#rows.delete(id);
    this.#empty.hidden = this.#rows.size > 0;
  }

  #clear() {
    this.#list.replaceChildren();
    this.#rows.clear();
    this.#empty.hidden = false;
  }

  async #copy(button) {
    const label = button.lastChild;
    try {
      await navigator.clipboard.writeText(asText(this.#conversation.items));
      label.textContent = t("Copied");
    } catch {
      label.textContent = t("Not allowed");
    }
    setTimeout(() => {
      label.textContent = t("Copy");
    }, 2000);
  }
}

function fileName(extension) {
  return `conversation-${new Date().toISOString().slice(0, 16).replace(/[:T]/g, "-")}.${extension}`;
}
