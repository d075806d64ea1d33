// What is being said now, large, both sides; finished sentences are also read to screen readers.

import { writtenBy } from "../item.js";
import { byId, make } from "./dom.js";
import { t } from "../words.js";

const UNHEARD_SHOWN_MS = 8000; // the transcript keeps them

export class Captions {
  #box = byId("captions");
  #welcome = byId("welcome");
  #user = byId("caption-user");
  #assistant = byId("caption-assistant");
  #author = byId("caption-author");
  #announcer = byId("announcer");
  #announced = new Map(); // texts by the ids of their items
  #forgotten = new Set(); // ids of replies whose unheard words have been shown long enough
  #conversation;
  #preferences;

  constructor(conversation, preferences) {
    this.#conversation = conversation;
    this.#preferences = preferences;
    conversation.addEventListener("item", ({ detail }) => this.#show(detail));
    conversation.addEventListener("removed", () => this.#showLast());
    conversation.addEventListener("cleared", () => this.#showLast());
    const size = new ResizeObserver(() => this.#letKeysScroll());
    for (const element of [this.#box, this.#welcome, this.#user, this.#assistant]) {
      size.observe(element);
    }
  }

  #showLast() {
    this.#user.hidden = true;
    this.#assistant.hidden = true;
    this.#author.hidden = true;
    const user = this.#conversation.last("user");
    const assistant = this.#conversation.last("assistant");
    this.#welcome.hidden = Boolean(user ?? assistant);
    for (const item of [user, assistant]) {
      if (item) {
        this.#show(item);
      }
    }
  }

  #show(item) {
    if (item.isEmpty || item !== this.#conversation.last(item.role)) {
      return;
    }
    this.#welcome.hidden = true;
    if (item.role === "user") {
      this.#showUser(item);
    } else if (item.role === "assistant") {
      this.#showAssistant(item);
    }
    this.#announce(item);
  }

  #showUser(item) {
    this.#user.hidden = false;
    this.#user.dataset.item = item.id;
    this.#user.replaceChildren(item.text, make("span", "stash", item.stash));
    const reply = this.#conversation.last("assistant");
    const isAnswered = reply !== null && this.#conversation.items.indexOf(reply) > this.#conversation.items.indexOf(item);
    this.#assistant.hidden = !isAnswered;
    this.#author.hidden = !isAnswered || !this.#author.textContent;
    if (!isAnswered) {
      this.#box.scrollTop = 0;
    }
  }

  #showAssistant(item) {
    const [spoken, upcoming] = item.spokenSplit;
    this.#assistant.hidden = false;
    this.#assistant.dataset.item = item.id;
    this.#author.textContent = writtenBy(item.author);
    this.#author.hidden = !this.#author.textContent;
    const edge = make("span", "");
    this.#assistant.replaceChildren(
      make("span", "spoken", spoken),
      edge,
      make("span", "upcoming", upcoming),
      item.unheard && !this.#forgotten.has(item.id) ? make("del", "unheard", item.unheard) : "",
    );
    if (item.unheard && !this.#forgotten.has(item.id)) {
      setTimeout(() => {
        this.#forgotten.add(item.id);
        if (this.#assistant.dataset.item === item.id) {
          this.#assistant.querySelector(".unheard")?.remove();
        }
      }, UNHEARD_SHOWN_MS);
    }
    if (item.state === "live" || upcoming) {
      this.#follow(edge);
    }
  }

  /** What scrolls must be within reach of the keyboard, and only then a stop on the way. */
  #letKeysScroll() {
    if (this.#box.scrollHeight > this.#box.clientHeight) {
      this.#box.tabIndex = 0;
    } else {
      this.#box.removeAttribute("tabindex");
    }
  }

  /** Keep the place where the voice is in view. */
  #follow(edge) {
    const place = edge.getBoundingClientRect();
    const box = this.#box.getBoundingClientRect();
    if (place.bottom > box.bottom - 48 || place.top < box.top) {
      this.#box.scrollTop += place.bottom - box.top - box.height / 2;
    }
  }

  #announce(item) {
    const isUser = item.role === "user";
    const told = this.#announced.get(item.id);
    if (item.state === "live" || !item.text || told === item.text || (told && !isUser)) {
      return;
    }
    if (item.isTyped || (item.isSpoken && !this.#preferences.isAnnounced)) {
      return; // they wrote it themselves, or hear it
    }
    this.#announced.set(item.id, item.text);
    const rest = told && item.text.startsWith(told) ? item.text.slice(told.length).trim() : item.text;
    this.#announcer.append(make("p", "", `${isUser ? t("You") : t("Assistant")}: ${rest}`));
    while (this.#announcer.childElementCount > 6) {
      this.#announcer.firstElementChild.remove();
    }
  }
}
