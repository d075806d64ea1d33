// The browser's other tabs with this page: one of them talks at a time, or they would hear and answer each other.

const LOCK = "voiceapp.talking"; // the browser takes it back from a tab that is closed or crashes
const CHANNEL = "voiceapp.tabs";
const HANDOVER_MS = 2000;

/** Events: `taken` when another tab talks from now on, `signed-out` when the person has signed out in another tab. */
export class Tabs extends EventTarget {
  #locks = navigator.locks; // for secure pages only: others have neither microphone nor sound
  #channel = new BroadcastChannel(CHANNEL);
  #release = null; // while this tab may talk
  #asked = Promise.resolve(false); // one question after the other

  constructor() {
    super();
    this.#channel.addEventListener("message", ({ data }) => {
      if (data === "signed-out" || (data === "move" && this.#release)) {
        this.dispatchEvent(new Event(data === "move" ? "taken" : data));
      }
    });
  }

  /** Resolves to whether this tab may talk now; where another does, only if `takesOver`, and when that one has stopped. */
  talk({ takesOver }) {
    this.#asked = this.#asked.then(() => this.#ask(takesOver));
    return this.#asked;
  }

  async #ask(takesOver) {
    if (!this.#locks || this.#release || (await this.#request({ ifAvailable: true }))) {
      return true;
    }
    if (!takesOver) {
      return false;
    }
    this.#channel.postMessage("move");
    const signal = AbortSignal.timeout(HANDOVER_MS);
    return (await this.#request({ signal })) || this.#request({ steal: true }); // from a tab that hangs
  }

  /** This tab talks no more. */
  release() {
    this.#release?.();
    this.#release = null;
  }

  /** The person signs out here. */
  signOut() {
    this.#channel.postMessage("signed-out");
  }

  /** Ask for the lock and hold it; resolves to whether it was granted. */
  #request(options) {
    return new Promise((resolve) => {
      const hold = (lock) => {
        resolve(lock !== null);
        return lock && new Promise((release) => {
          this.#release = release;
        });
      };
      this.#locks.request(LOCK, options, hold).catch(() => {
        resolve(false); // the wait was too long; or, where it had been granted, the lock was stolen
        if (this.#release) {
          this.#release = null;
          this.dispatchEvent(new Event("taken"));
        }
      });
    });
  }
}
