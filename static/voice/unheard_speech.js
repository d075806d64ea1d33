// Notices when the user speaks while the connection is lost, and says so once per loss.

import { t } from "./words.js";

const NOT_HEARD = t("The connection was lost while you were speaking. What you said was not heard: please say it again.");
const UNNOTICED_MS = 20000; // speech that the server did not notice in the time before a loss was lost with it

/** Event: `told`. */
export class UnheardSpeech extends EventTarget {
  #conversation;
  #isLost = false;
  #wasTold = false;
  #spokeAt = -Infinity; // when the person last spoke without the server noticing

  constructor(conversation) {
    super();
    this.#conversation = conversation;
  }

  /** The connection is back, or the conversation is over. */
  reset() {
    this.#isLost = false;
    this.#wasTold = false;
    this.#spokeAt = -Infinity;
  }

  /** The connection is lost. Returns whether the user spoke just before without the server noticing. */
  lose() {
    this.#isLost = true;
    return Date.now() - this.#spokeAt < UNNOTICED_MS;
  }

  /** The microphone hears the person speak; `isNoticed`: so does the server. */
  speaks(isNoticed) {
    if (this.#isLost) {
      this.tell();
    } else if (!isNoticed) {
      this.#spokeAt = Date.now();
    }
  }

  /** The server has noticed that the person speaks. */
  notice() {
    this.#spokeAt = -Infinity;
  }

  tell() {
    if (!this.#wasTold) {
      this.#wasTold = true;
      this.#conversation.addNote(NOT_HEARD);
      this.dispatchEvent(new Event("told"));
    }
  }
}
