// The screen stays on while a conversation is open.

export class WakeLock {
  #lock = null;
  #isWanted = false;

  constructor() {
    document.addEventListener("visibilitychange", () => this.#acquire()); // browsers drop it with the page out of sight
  }

  set isOn(isOn) {
    this.#isWanted = isOn;
    if (isOn) {
      this.#acquire();
    } else {
      this.#lock?.release();
      this.#lock = null;
    }
  }

  async #acquire() {
    if (!this.#isWanted || document.visibilityState !== "visible" || !navigator.wakeLock) {
      return;
    }
    try {
      this.#lock = await navigator.wakeLock.request("screen");
    } catch {
      // Refused when the battery is low: the conversation works all the same.
    }
  }
}
