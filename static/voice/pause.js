// Waiting.

/** A pause that can be ended early. */
export class Pause {
  #end = null;

  get isOn() {
    return this.#end !== null;
  }

  /** Resolves after so many milliseconds, or when the pause is ended; `milliseconds` is null where only that ends it. */
  wait(milliseconds) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const timer = milliseconds === null ? null : setTimeout(() => this.end(), milliseconds);
        this.#end = () => {
          clearTimeout(timer);
          resolve();
        };
      })
    );
  }

  /** Go on now; harmless when nothing waits. */
  end() {
    this.#end?.();
    this.#end = null;
  }
}

/** Something to do by a time, unless it is called off. */
export class Deadline {
  #timer = null;

  get isSet() {
    return this.#timer !== null;
  }

  /** Do it after so many milliseconds; one that is set already stays. */
  set(milliseconds, act) {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      act();
    }, milliseconds);
  }

  clear() {
    clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Resolves to `value` after so many milliseconds. */
export function after(milliseconds, value = undefined) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds, value);
  });
}
