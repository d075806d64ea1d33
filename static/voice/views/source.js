// The passages that the last reply was taken from, in full, each with a link to its page of the manual.

import { byId, make } from "./dom.js";

export class SourceCard {
  #card = byId("source");
  #conversation;
  /** The item that was asked with; the next one takes the card away. */
  #question = null;
  #response = "";

  constructor(conversation) {
    this.#conversation = conversation;
    conversation.addEventListener("source", ({ detail }) => this.#show(detail));
    conversation.addEventListener("item", () => this.#hideWhenOver());
    conversation.addEventListener("cleared", () => this.#hideWhenOver());
  }

  #show({ response_id: response, title, text, page }) {
    if (response !== this.#response) {
      this.#card.replaceChildren();
    }
    this.#response = response;
    this.#question = this.#conversation.last("user");
    this.#card.append(page ? this.#link(title, page) : make("span", "source-title", title), make("p", "", text));
    this.#card.hidden = false;
  }

  #link(title, page) {
    const link = make("a", "source-title", title);
    link.href = `${this.#card.dataset.manualUrl}/${page}`;
    link.target = "_blank";
    return link;
  }

  #hideWhenOver() {
    if (this.#conversation.last("user") !== this.#question) {
      this.#card.hidden = true;
    }
  }
}
