// Getting a session and keeping it: dialling, standing in line, coming back after a cut. Knows nothing of what is said.

import * as events from "./events.js";
import { delayMs } from "./backoff.js";
import { TIMES_BELIEVED, endsSession, finalClose, isFinal, isPassing } from "./final_problems.js";
import { Deadline, Pause } from "./pause.js";
import { Resumption } from "./resumption.js";
import { closedEarly } from "./transports/failure.js";

const { SERVER } = events;
const STEADY_MS = 10000; // a session that did not last so long counts as one more failed attempt
const QUEUE_DELAY_MS = 3000;
const GREETING_TIMEOUT_MS = 10000;
const SIGN_OF_LIFE_MS = 4000;
const OFFLINE_SIGN_OF_LIFE_MS = 1500; // the machine has no network; a server on it answers all the same
const SLOW_SIGN_OF_LIFE_MS = 10000; // behind six seconds of speech that the network has not taken yet
const HIDDEN_PATIENCE_MS = 120000; // people who look at another tab may still be talking; after that, they have left
const FRESH_DIAL_MS = 1000;

/**
 * Events: `phase` (detail {phase, retryAt, reason, position}), `event` (detail: a server event), `congested` (detail: boolean),
 * `quality` (detail {rttMs, lossShare, playoutMs}), `fallback` (detail: [{name, failure}]) when an open session is
 * not on the transport that was tried first, `lost` when the session is gone: before the first attempt to come back, or
 * after one that came too late, `resumed` when it goes on over another connection, `failed` (detail {code, message,
 * reasons}) when it stays closed.
 * Phases: closed, connecting, queued, open, reconnecting. `retryAt` is when the next attempt is due (epoch ms), and
 * `reason` the code of what was in the way last; `position` is the place in the queue of a full server, or null.
 */
export class Connection extends EventTarget {
  #makeTransport;
  #diagnose;
  #pauseReplies;
  #resumption = new Resumption();
  #transport = null;
  #phase = "closed";
  #attempt = 0;
  #failed = []; // transports that did not come up in the last attempt: {name, failure}
  #greetedAt = 0;
  #lostAt = 0;
  #quickLosses = 0; // in a row
  #quickRefusals = 0; // those of them that the server closed by its own decision
  #tries = 0; // to come back
  #triedAt = null; // while an attempt to come back is under way
  #pause = new Pause();
  #isHurried = false;
  #closing = null;
  #signOfLife = new Deadline();

  /**
   * `makeTransport(failed, query)` gives a fresh one, or null when none is left beside those that failed, [{name,
   * failure}]; `diagnose(failed)` tells why a dial failed: {code, message, reasons}; `pauseReplies()` resolves to the
   * replies that were not heard to their end, [{itemId, heardMs}], when they may go on.
   */
  constructor({ makeTransport, diagnose, pauseReplies }) {
    super();
    this.#pauseReplies = pauseReplies;
    this.#makeTransport = makeTransport;
    this.#diagnose = diagnose;
    window.addEventListener("online", () => this.#surroundingsChanged());
    window.addEventListener("offline", () => this.#doubt());
    document.addEventListener("visibilitychange", () => this.#isVisible && this.#surroundingsChanged());
  }

  get phase() {
    return this.#phase;
  }

  /** Name of the transport in use, or null. */
  get transportName() {
    return this.#transport?.name ?? null;
  }

  /** Returns whether the event left, or will when the connection is back. */
  send(event) {
    const isKept = this.#resumption.isHeld || (this.#transport?.send(event) ?? false);
    if (isKept) {
      this.#resumption.sent(event);
    }
    return isKept;
  }

  sendAudio(pcm) {
    return this.#transport?.sendAudio(pcm) ?? false;
  }

  /** Resolves to {session, wasQueued} once the server has greeted us, or to null when it failed or was closed. */
  async open() {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#quickLosses = 0;
    this.#quickRefusals = 0;
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
      this.#enter("queued", Date.now() + QUEUE_DELAY_MS, "", problem.reasons[0]?.position ?? null);
      await this.#pause.wait(QUEUE_DELAY_MS);
      if (attempt !== this.#attempt) {
        return null;
      }
    }
  }

  close() {
    this.#attempt += 1;
    this.#pause.end();
    this.#resumption.forget();
    this.#hangUp();
    this.#enter("closed");
  }

  /** Try at once instead of waiting. */
  hurry() {
    this.#tries = 0;
    if (this.#pause.isOn) {
      this.#pause.end();
    } else if (this.#triedAt !== null && Date.now() - this.#triedAt > FRESH_DIAL_MS) {
      this.#isHurried = true;
      this.#transport?.abandon(); // an attempt that began in the outage may hang for long
    }
  }

  /** One attempt by whichever transport comes up: the greeting's session, or null. */
  async #dial(attempt) {
    this.#failed = [];
    for (;;) {
      this.#hangUp();
      const transport = this.#makeTransport(this.#failed, this.#resumption.query);
      if (!transport) {
        return null;
      }
      const { session, failure } = await this.#greet(transport);
      if (attempt !== this.#attempt) {
        return null;
      }
      if (session) {
        if (this.#failed.length > 0) {
          this.dispatchEvent(new CustomEvent("fallback", { detail: this.#failed }));
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
        this.#resumption.received(detail);
        if (detail.type === SERVER.SESSION_CREATED || detail.type === SERVER.SESSION_RESUMED) {
          clearTimeout(timer);
          this.#greeted(detail);
          resolve(detail.session ?? {});
        } else if (detail.type === SERVER.SESSION_CLOSING) {
          this.#closing = detail;
        } else if (detail.type === SERVER.SESSION_UPDATED) {
          this.#signOfLife.clear();
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
    transport.addEventListener("congested", ({ detail }) => detail && this.#check(SLOW_SIGN_OF_LIFE_MS));
    const failure = await transport.connect().then(() => null, (error) => error);
    const session = failure ? null : await greeted;
    if (!session && transport === this.#transport) {
      this.#hangUp();
    }
    return { session, failure: failure ?? closedEarly(this.#closing) };
  }

  #greeted({ type, received }) {
    this.#greetedAt = Date.now();
    this.#enter("open");
    if (type === SERVER.SESSION_RESUMED) {
      for (const event of this.#resumption.resume(received)) {
        this.#transport.send(event);
      }
      this.dispatchEvent(new Event("resumed"));
    } else if (this.#resumption.isHeld) {
      this.#resumption.forget();
      this.dispatchEvent(new Event("lost")); // we come too late
    }
  }

  // ── Noticing that it is gone ─────────────────────────────────────────────────────────────────────────────────────

  get #isVisible() {
    return document.visibilityState !== "hidden";
  }

  /** The network or the person is back: whatever we waited for, it is worth a try now. */
  #surroundingsChanged() {
    if (this.#phase === "open") {
      this.#check();
    } else {
      this.hurry();
    }
  }

  /** The browser says that there is no network. */
  #doubt() {
    this.#signOfLife.clear(); // it would be waited for too long
    this.#check(OFFLINE_SIGN_OF_LIFE_MS);
  }

  /** Is the other side still there? After a change of networks or a sleep, an open socket may be dead for minutes. */
  #check(patienceMs = SIGN_OF_LIFE_MS) {
    if (this.#phase !== "open" || this.#signOfLife.isSet) {
      return;
    }
    this.send(events.sessionUpdate({})); // changes nothing, and is confirmed
    this.#signOfLife.set(patienceMs, () => {
      this.#hangUp({ isLost: true });
      this.#comeBack();
    });
  }

  /** The open socket closed and we did not ask for it. */
  #closed({ code, reason }) {
    this.#transport = null;
    this.#signOfLife.clear();
    if (this.#phase !== "open") {
      return; // a dial failed: the attempt that dialled deals with it
    }
    const message = this.#closing?.reason || reason;
    const isQuick = Date.now() - this.#greetedAt < STEADY_MS;
    this.#quickRefusals = isQuick && endsSession(code) ? this.#quickRefusals + 1 : 0;
    if (endsSession(code)) {
      this.#resumption.forget();
    }
    const final = finalClose(code) ?? (this.#quickRefusals >= TIMES_BELIEVED ? "refused" : null);
    if (final) {
      this.#fail({ code: final, message, reasons: [] });
    } else {
      this.#comeBack();
    }
  }

  // ── Coming back ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Try until it works or is refused for good; in a hidden tab, only for some minutes and then when it is seen. */
  async #comeBack() {
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#lostAt = Date.now();
    this.#quickLosses = this.#lostAt - this.#greetedAt < STEADY_MS ? this.#quickLosses + 1 : 0;
    this.#enter("reconnecting");
    await this.#hold();
    let reason = "";
    let refusals = 0;
    for (this.#tries = Math.max(0, this.#quickLosses - 1); ; ) {
      await this.#pauseToComeBack(reason);
      const problem = attempt === this.#attempt ? await this.#tryToComeBack(attempt) : null;
      if (problem === null) {
        return;
      }
      reason = problem.code;
      refusals = isPassing(reason) ? 0 : refusals + 1;
      if (isFinal(reason, refusals)) {
        this.#fail(problem);
        return;
      }
    }
  }

  /** What may go on waits; what may not is lost. */
  async #hold() {
    if (this.#resumption.isPossible) {
      this.#resumption.hold();
      this.#isHurried ||= this.#quickLosses <= 1; // the server holds the session: reconnect at once
      this.#resumption.keepHeard(await this.#pauseReplies());
    } else {
      this.#resumption.forget();
      this.dispatchEvent(new Event("lost"));
    }
  }

  async #pauseToComeBack(reason) {
    if (this.#isHurried) {
      this.#isHurried = false;
      return;
    }
    const hasPatience = this.#isVisible || Date.now() - this.#lostAt < HIDDEN_PATIENCE_MS;
    const delay = delayMs(this.#tries);
    this.#tries += 1;
    this.#enter("reconnecting", hasPatience ? Date.now() + delay : null, reason);
    await this.#pause.wait(hasPatience ? delay : null);
  }

  /** What was in the way; null when we are back, or when coming back is over for another reason. */
  async #tryToComeBack(attempt) {
    this.#triedAt = Date.now();
    try {
      if ((await this.#dial(attempt)) || attempt !== this.#attempt) {
        return null;
      }
      const problem = await this.#diagnose(this.#failed);
      return attempt === this.#attempt ? problem : null;
    } finally {
      this.#triedAt = null;
    }
  }

  /** `isLost`: the other side may wait for us. */
  #hangUp({ isLost = false } = {}) {
    const transport = this.#transport;
    this.#transport = null;
    this.#signOfLife.clear();
    if (isLost || this.#resumption.isHeld) {
      transport?.abandon();
    } else {
      transport?.close();
    }
  }

  #fail(problem) {
    this.#attempt += 1;
    this.#resumption.forget();
    this.#hangUp();
    this.#enter("closed");
    this.dispatchEvent(new CustomEvent("failed", { detail: problem }));
  }

  #enter(phase, retryAt = null, reason = "", position = null) {
    this.#phase = phase;
    this.dispatchEvent(new CustomEvent("phase", { detail: { phase, retryAt, reason, position } }));
  }
}
