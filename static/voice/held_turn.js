// The place at the head of the line, held until the person says that they are there.

const HELD_MS = 25000;

export class HeldTurn {
  #settle = null;

  /** Resolves to whether the person took it, and did so in time. */
  async offer() {
    const isTaken = await new Promise((resolve) => {
      this.#settle = resolve;
      setTimeout(resolve, HELD_MS, false);
    });
    this.#settle = null;
    return isTaken;
  }

  take() {
    this.#settle?.(true);
  }

  giveUp() {
    this.#settle?.(false);
  }
}
