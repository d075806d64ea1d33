// Getting a session and keeping it: dialling, standing in line, coming back after a cut. Knows nothing of what is said.

import { SERVER } from "./events.js";

const RECONNECT_DELAYS_MS = [200, 1000, 2000, 4000, 8000, 8000, 8000, 8000];
const STEADY_MS = 10000; // a session that did not last so long counts as one more failed attempt
const QUEUE_DELAY_MS = 3000;
const GREETING_TIMEOUT_MS = 10000;

/** Close codes after which trying again cannot help, and the card that explains each. */
const FINAL_CLOSES = { 4000: "session_over", 4400: "refused", 4401: "signed_out" };

/**
 * Events: `phase` (detail {phase, retryAt}), `event` (detail: a server event), `congested` (detail: boolean),
 * `quality` (detail {rttMs, lossShare, playoutMs}), `fallback` (detail: a TransportFailure) when an open session is
 * not on the transport that was tried first, `lost` before the first attempt to come back, `failed` (detail {code,
 * message, reasons}) when it stays closed.
 * Phases: closed, connecting, queued, open, reconnecting.
 */
export class Connection extends EventTarget {
  #makeTransport;
  #diagnose;
  #transport = null;
  #phase = "closed";
  #attempt = 0;
  #failed = []; // transports that did not come up in the last attempt: {name, failure}
  #greetedAt = 0;
  #quickLosses = 0; // in a row
  #wake = null;
  #closing = null;

  /**
   * `makeTransport(failed)` gives a fresh one, or null when none is left beside those that failed, [{name, failure}];
   * `diagnose(failed)` tells why a dial failed: {code, message, reasons}.
   */
  constructor({ makeTransport, diagnose }) {
    super();
    this.#makeTransport = makeTransport;
    this.#diagnose = diagnose;
    window.addEventListener("online", () => this.#wake?.());
  }

  get phase() {
    return this.#phase;
  }

  /** Name of the transport in use, or null. */
  get transportName() {
    return this.#transport?.name ?? null;
  }

  send(event) {
    return this.#transport?.send(event) ?? false;
  }

  sendAudio(pcm) {
    return this.#transport?.sendAudio(pcm) ?? false;
  }

  /** Resolves to {session, wasQueued} once the server has greeted us, or to null when it failed or was closed. */
  async open() {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#quickLosses = 0;
    this.#enter("connecting");
    let wasQueued = false;
    for (;;) {
      const session = await this.#dial(attempt);
      if (session || attempt !== this.#attempt) {
        return session && { session, wasQueued };
      }
      const problem = await this.#diagnose(this.#failed);
      if (attempt !== this.#attempt) {
        return null;
      }
      if (problem.code !== "at_capacity") {
        this.#fail(problem);
        return null;
      }
      wasQueued = true;
      await this.#pause(QUEUE_DELAY_MS, "queued");
      if (attempt !== this.#attempt) {
        return null;
      }
    }
  }

  close() {
    this.#attempt += 1;
    this.#wake?.();
    this.#hangUp();
    this.#enter("closed");
  }

  /** Try at once instead of waiting. */
  hurry() {
    this.#wake?.();
  }

  /** One attempt by whichever transport comes up: the greeting's session, or null. */
  async #dial(attempt) {
    this.#failed = [];
    for (;;) {
      this.#hangUp();
      const transport = this.#makeTransport(this.#failed);
      if (!transport) {
        return null;
      }
      const { session, failure } = await this.#greet(transport);
      if (attempt !== this.#attempt) {
        return null;
      }
      if (session) {
        if (this.#failed.length > 0) {
          this.dispatchEvent(new CustomEvent("fallback", { detail: this.#failed[0].failure }));
        }
        return session;
      }
      this.#failed.push({ name: transport.name, failure });
    }
  }

  /** Connect and wait for the greeting: {session}, or {failure}. */
  async #greet(transport) {
    this.#transport = transport;
    this.#closing = null;
    const greeted = new Promise((resolve) => {
      const timer = setTimeout(resolve, GREETING_TIMEOUT_MS, null);
      transport.addEventListener("event", ({ detail }) => {
        if (transport !== this.#transport) {
          return;
        }
        if (detail.type === SERVER.SESSION_CREATED) {
          clearTimeout(timer);
          this.#greetedAt = Date.now();
          this.#enter("open");
          resolve(detail.session);
        } else if (detail.type === SERVER.SESSION_CLOSING) {
          this.#closing = detail;
        }
        this.dispatchEvent(new CustomEvent("event", { detail }));
      });
      transport.addEventListener("close", ({ detail }) => {
        clearTimeout(timer);
        resolve(null);
        if (transport === this.#transport) {
          this.#closed(detail);
        }
      });
    });
    for (const name of ["congested", "quality"]) {
      transport.addEventListener(name, ({ detail }) => this.dispatchEvent(new CustomEvent(name, { detail })));
    }
    const failure = await transport.connect().then(() => null, (error) => error);
    const session = failure ? null : await greeted;
    if (!session && transport === this.#transport) {
      this.#hangUp();
    }
    return { session, failure };
  }

  /** The open socket closed and we did not ask for it. */
  #closed({ code, reason }) {
    this.#transport = null;
    if (this.#phase !== "open") {
      return; // a dial failed: whoever dialled deals with it
    }
    const message = this.#closing?.reason || reason;
    if (FINAL_CLOSES[code] || code === 1000) {
      this.#fail({ code: FINAL_CLOSES[code] ?? "ended", message, reasons: [] });
    } else {
      this.#comeBack();
    }
  }

  async #comeBack() {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#quickLosses = Date.now() - this.#greetedAt < STEADY_MS ? this.#quickLosses + 1 : 0;
    this.#enter("reconnecting");
    this.dispatchEvent(new Event("lost"));
    for (const delayMs of RECONNECT_DELAYS_MS.slice(Math.max(0, this.#quickLosses - 1))) {
      await this.#pause(delayMs, "reconnecting");
      if (attempt !== this.#attempt) {
        return;
      }
      const session = await this.#dial(attempt);
      if (session || attempt !== this.#attempt) {
        return;
      }
      const problem = await this.#diagnose(this.#failed);
      if (attempt === this.#attempt && problem.code === "signed_out") {
        this.#fail(problem);
        return;
      }
    }
    this.#fail({ code: "connection_lost", message: "", reasons: [] });
  }

  #pause(delayMs, phase) {
    this.#enter(phase, Date.now() + delayMs);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, delayMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #hangUp() {
    const transport = this.#transport;
    this.#transport = null;
    transport?.close();
  }

  #fail(problem) {
    this.#attempt += 1;
    this.#hangUp();
    this.#enter("closed");
    this.dispatchEvent(new CustomEvent("failed", { detail: problem }));
  }

  #enter(phase, retryAt = null) {
    this.#phase = phase;
    this.dispatchEvent(new CustomEvent("phase", { detail: { phase, retryAt } }));
  }
}
