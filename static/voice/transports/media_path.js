// Whether media get through this network, as far as calls have shown. Pure but for its storage, so that bare JavaScript tests it.

const STORAGE_KEY = "voiceapp.no_media_path_until";
const REMEMBERED_MS = 3600000; // nobody tells a page that it is in another network now

export class MediaPath {
  #storage;
  #now;
  #key;
  #blockedUntil; // ms since 1970; 0 when nothing is known against it
  #server; // what was called in vain

  /** `storage`: a Storage, shared by the pages of this browser; it may refuse to keep anything. */
  constructor(storage, now = Date.now, key = STORAGE_KEY) {
    this.#storage = storage;
    this.#now = now;
    this.#key = key;
    [this.#blockedUntil, this.#server] = this.#stored();
  }

  /** Worth trying: no call has failed here within the hour. `server` tells apart what is called. */
  isOpen(server = "") {
    const leftMs = this.#blockedUntil - this.#now();
    const isOver = leftMs <= 0 || leftMs > REMEMBERED_MS; // a clock that was set back must not close it for long
    return isOver || server !== this.#server;
  }

  /** A call found no way through. */
  block(server = "") {
    this.#remember(this.#now() + REMEMBERED_MS, server);
  }

  /** The network changed, or the person wants it tried. */
  forget() {
    if (this.#blockedUntil !== 0) {
      this.#remember(0, "");
    }
  }

  #remember(until, server) {
    this.#blockedUntil = until;
    this.#server = server;
    try {
      this.#storage.setItem(this.#key, `${until} ${server}`);
    } catch {
      // Storage is full or forbidden: it is known until the page is closed.
    }
  }

  #stored() {
    try {
      const [until, server = ""] = (this.#storage.getItem(this.#key) ?? "").split(" ");
      return [Number(until) || 0, server];
    } catch {
      return [0, ""];
    }
  }
}
