// What it takes to come back to the same session over another connection: its token, what was received, what was sent.

import { CLIENT, SERVER } from "./events.js";

const NUMBERED = "event_"; // followed by the number of an event
const KEPT_EVENTS = 200; // of ours that the server may not have received

function randomToken() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Resumption {
  #now;
  #token = "";
  #graceMs = 0;
  #last = 0; // number of the latest event of the server's
  #sent = []; // our latest events
  #sentCount = 0;
  #heldSince = null;
  #heard = ""; // of the replies that were not heard to their end

  constructor(now = () => Date.now()) {
    this.#now = now;
  }

  /** The session may wait for us, as far as is known. */
  get isPossible() {
    return this.#token !== "" && (this.#heldSince === null || this.#now() - this.#heldSince < this.#graceMs);
  }

  /** The connection is lost, and we mean to come back. */
  get isHeld() {
    return this.#heldSince !== null;
  }

  /** Query parameters of the next connection. By the token, proxies lead it to the process that holds the session. */
  get query() {
    return this.isPossible && this.isHeld
      ? { resume: this.#token, last: this.#last, heard: this.#heard }
      : { resume: randomToken() };
  }

  /** Another session, or none. */
  forget() {
    this.#token = "";
    this.#last = 0;
    this.#sent = [];
    this.#sentCount = 0;
    this.#heldSince = null;
  }

  /** The server has said something. */
  received({ type, event_id: id, token, grace_s: graceS }) {
    if (type === SERVER.SESSION_RESUMABLE) {
      this.#token = token;
      this.#graceMs = graceS * 1000;
    }
    this.#last = Math.max(this.#last, Number(id?.slice(NUMBERED.length)) || 0);
  }

  /** An event of ours was sent, or waits for the next connection. */
  sent(event) {
    if (event.type !== CLIENT.AUDIO_APPEND) {
      this.#sentCount += 1;
      this.#sent = [...this.#sent, event].slice(-KEPT_EVENTS);
    }
  }

  /** The connection is lost. */
  hold() {
    this.#heldSince ??= this.#now();
  }

  /** `replies` were not heard to their end: [{itemId, heardMs}]. */
  keepHeard(replies) {
    this.#heard = replies.map(({ itemId, heardMs }) => `${itemId}:${Math.round(heardMs)}`).join(",");
  }

  /** We are back. Returns our events that the server, which has received so many, still lacks. */
  resume(received) {
    this.#heldSince = null;
    return this.#sent.slice(Math.min(0, received - this.#sentCount) || this.#sent.length);
  }
}
