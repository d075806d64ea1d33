// What leaves for the server.

import { CLIENT } from "./events.js";

/** Event: `sent` (detail: an event that left). */
export class Outbox extends EventTarget {
  #connection;
  #quiet = new Set();

  constructor(connection) {
    super();
    this.#connection = connection;
  }

  send(event) {
    if (this.#connection.send(event)) {
      this.#tell(event);
    }
  }

  /** Send what the server may refuse without anybody needing to know: the reply may just have ended by itself. */
  sendQuietly(event) {
    this.#quiet.add(event.event_id);
    this.send(event);
  }

  /** Whether the event that was refused was sent quietly. */
  forgives({ event_id: id }) {
    return this.#quiet.delete(id);
  }

  sendAudio(pcm) {
    if (this.#connection.sendAudio(pcm)) {
      this.#tell({ type: CLIENT.AUDIO_APPEND, audio: `(${pcm.length} samples)` });
    }
  }

  #tell(event) {
    this.dispatchEvent(new CustomEvent("sent", { detail: event }));
  }
}
