// Whether media get through this network, as far as calls have shown. Pure but for its storage, so that bare JavaScript tests it.

const STORAGE_KEY = "voiceapp.no_media_path_until";
const REMEMBERED_MS = 3600000; // nobody tells a page that it is in another network now

export class MediaPath {
  #storage;
  #now;
  #blockedUntil; // ms since 1970; 0 when nothing is known against it

  /** `storage`: a Storage, shared by the pages of this browser; it may refuse to keep anything. */
  constructor(storage, now = Date.now) {
    this.#storage = storage;
    this.#now = now;
    this.#blockedUntil = this.#stored();
  }

  /** Worth trying: no call has failed here within the hour. */
  get isOpen() {
    const leftMs = this.#blockedUntil - this.#now();
    return leftMs <= 0 || leftMs > REMEMBERED_MS; // a clock that was set back must not close it for long
  }

  /** A call found no way through. */
  block() {
    this.#remember(this.#now() + REMEMBERED_MS);
  }

  /** The network changed, or the person wants it tried. */
  forget() {
    if (this.#blockedUntil !== 0) {
      this.#remember(0);
    }
  }

  #remember(until) {
    this.#blockedUntil = until;
    try {
      this.#storage.setItem(STORAGE_KEY, String(until));
    } catch {
      // Storage is full or forbidden: it is known until the page is closed.
    }
  }

  #stored() {
    try {
      return Number(this.#storage.getItem(STORAGE_KEY)) || 0;
    } catch {
      return 0;
    }
  }
}
