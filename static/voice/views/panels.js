// Transcript and event drawer: open, close, and where the focus goes. On a phone they cover the page.

import { byId } from "./dom.js";

const WIDE = matchMedia("(min-width: 60rem)");
const ROOMY = matchMedia("(min-width: 45.01rem) and (min-height: 30.01rem)");

class Panel {
  #panel;
  #opener;
  #coversPage;

  constructor(name, coversPage) {
    this.#panel = byId(name);
    this.#opener = byId(`open-${name}`);
    this.#coversPage = coversPage;
    this.onToggle = (_isOpen) => {};
    this.#opener.addEventListener("click", () => this.toggle(this.#panel.hidden, true));
    byId(`close-${name}`).addEventListener("click", () => this.toggle(false, true));
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.toggle(false, true);
      }
    });
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  /** `byPerson`: the focus goes along, and the choice is remembered. */
  toggle(isOpen, byPerson = false) {
    this.#panel.hidden = !isOpen;
    this.#opener.setAttribute("aria-expanded", String(isOpen));
    this.shade();
    if (byPerson) {
      (isOpen ? this.#panel : this.#opener).focus();
      this.onToggle(isOpen);
    }
  }

  /** What a panel covers must not be reachable by keyboard. */
  shade() {
    const isCovering = this.isOpen && this.#coversPage();
    for (const element of document.querySelectorAll(".bar, .stage")) {
      element.toggleAttribute("inert", isCovering);
    }
  }
}

export class Panels {
  constructor(preferences) {
    const transcript = new Panel("transcript", () => !WIDE.matches);
    const drawer = new Panel("drawer", () => !ROOMY.matches);
    const wasOpen = () => WIDE.matches && preferences.isTranscriptOpen === true;
    transcript.toggle(wasOpen());
    transcript.onToggle = (isOpen) => {
      if (WIDE.matches) {
        preferences.isTranscriptOpen = isOpen;
      }
    };
    WIDE.addEventListener("change", () => transcript.toggle(wasOpen()));
    ROOMY.addEventListener("change", () => drawer.shade());
  }
}
