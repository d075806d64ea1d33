// VoiceSession: the conversation's state, from the first tap to the end, over one transport at a time.

import * as events from "./events.js";
import { Connection } from "./connection.js";
import { Readiness, problem } from "./readiness.js";
import { Talk } from "./talk.js";
import { TransportChoice } from "./transports/choice.js";

const { SERVER } = events;
const HELD_TURN_MS = 25000;
const TRANSPORT_CHOICES = ["transport", "isPushToTalk"];

/** What a card says of a conversation that nothing stood in the way of, but that did not come up. */
function refusal(failure) {
  return failure?.kind === "no_path" ? problem("no_path") : problem("refused", failure?.serverMessage);
}

/**
 * Events: `state` (detail: state), `problem` (detail {code, message, reasons}), `solved` (detail: code),
 * `traffic` (detail {direction: "in" | "out", event}), `congested` (detail: boolean), `quality` (detail {rttMs,
 * lossShare, playoutMs}), `waiting` (detail: for what).
 * States: idle, connecting, queued, your-turn, listening, user-speaking, processing, ai-speaking, error, reconnecting.
 */
export class VoiceSession extends EventTarget {
  #readiness;
  #choice;
  #connection;
  #talk;
  #phase = "idle"; // idle, connecting, queued, your-turn, live, reconnecting, error
  #state = "idle";
  #takeTurn = null;

  /** When the next attempt to connect is due (epoch ms), while queued or reconnecting. */
  retryAt = null;

  /** When this session began (epoch ms), while live. */
  liveSince = null;

  constructor({ sound, conversation, preferences, fetchConfig }) {
    super();
    this.#readiness = new Readiness(fetchConfig);
    this.#choice = new TransportChoice({ preferences, sound, readiness: this.#readiness });
    this.#connection = new Connection({
      makeTransport: (failed) => this.#choice.make(failed),
      diagnose: async (failed) => (await this.#readiness.obstacle()) ?? refusal(failed.at(-1)?.failure),
    });
    const isLive = () => this.isLive;
    this.#talk = new Talk({ sound, conversation, preferences, connection: this.#connection, isLive });
    this.#connection.addEventListener("event", ({ detail }) => this.#receive(detail));
    this.#connection.addEventListener("phase", ({ detail }) => this.#phaseChanged(detail));
    this.#connection.addEventListener("lost", () => this.#talk.lose());
    this.#connection.addEventListener("failed", ({ detail }) => this.#failed(detail));
    this.#connection.addEventListener("congested", ({ detail }) => this.#tell("congested", detail));
    this.#connection.addEventListener("quality", ({ detail }) => {
      this.#talk.trackPlayoutMs = detail.playoutMs;
      this.#tell("quality", detail);
    });
    this.#connection.addEventListener("fallback", ({ detail }) => {
      this.#tell("problem", problem(detail?.kind === "no_path" ? "no_udp" : "no_webrtc"));
    });
    for (const name of ["problem", "solved", "waiting", "traffic"]) {
      this.#talk.addEventListener(name, ({ detail }) => this.#tell(name, detail));
    }
    this.#talk.addEventListener("change", () => this.#update());
    sound.addEventListener("blocked", () => this.#tell("problem", problem("autoplay_blocked")));
    sound.addEventListener("unblocked", () => this.#tell("solved", "autoplay_blocked"));
  }

  get state() {
    return this.#state;
  }

  get isLive() {
    return this.#phase === "live";
  }

  get isActive() {
    return this.#phase !== "idle" && this.#phase !== "error";
  }

  /** Name of the transport in use, or null. */
  get transportName() {
    return this.#connection.transportName;
  }

  get hasMicrophone() {
    return this.#talk.hasMicrophone;
  }

  get isHolding() {
    return this.#talk.isHolding;
  }

  // ── What the person does ─────────────────────────────────────────────────────────────────────────────────────────

  /** Begin, or go on with, the conversation. Resolves to whether it is live. Call it inside the person's tap. */
  async start({ withMicrophone = true } = {}) {
    if (this.isActive) {
      return this.isLive;
    }
    this.#enter("connecting");
    const hasSound = this.#talk.openSound().then(() => true, () => false); // begun inside the tap, or browsers forbid it
    const obstacle = await this.#readiness.patientObstacle(
      () => this.#phase === "connecting",
      () => this.#tell("waiting", "engines"),
    );
    if (!(await hasSound) || (obstacle && obstacle.code !== "at_capacity")) {
      this.#failed(obstacle ?? problem("unreachable"));
      return false;
    }
    if (withMicrophone && !(await this.openMicrophone())) {
      this.#enter("error");
      return false;
    }
    if (this.#phase !== "connecting") {
      this.#talk.closeMicrophone(); // stopped while the browser asked for permission
      return false;
    }
    const opened = await this.#connection.open();
    if (!opened || (opened.wasQueued && !(await this.#offerTurn(withMicrophone)))) {
      return false;
    }
    this.#begin(opened.session);
    return true;
  }

  /** End the conversation; its words stay, and start() goes on from them. */
  stop() {
    this.#connection.send(events.sessionFinish());
    this.#connection.close();
    this.#reset();
    this.#enter("idle");
  }

  /** A change that needs another session, such as the model: the words go along. */
  async restart() {
    if (this.isActive) {
      const withMicrophone = this.hasMicrophone;
      this.stop();
      await this.start({ withMicrophone });
    }
  }

  /** The person takes the held turn after standing in line. */
  takeTurn() {
    this.#takeTurn?.(true);
  }

  /** Come back now instead of after the pause. */
  hurry() {
    this.#connection.hurry();
  }

  /** Silence the assistant now; what was not heard is forgotten. */
  interrupt() {
    return this.#talk.interrupt();
  }

  setMuted(isMuted) {
    this.#talk.setMuted(isMuted);
  }

  /** Open the microphone, or change to the chosen one. Resolves to whether it is open. */
  openMicrophone() {
    return this.#talk.openMicrophone();
  }

  /** Send a typed message; connects without a microphone when nothing is connected. Resolves to whether it left. */
  async sendText(text) {
    if (!this.isLive && !(await this.start({ withMicrophone: false }))) {
      return false;
    }
    await this.#talk.type(text);
    return true;
  }

  /** Push to talk: from here on the microphone is heard. */
  async holdStart() {
    if (this.isLive) {
      await this.#talk.holdStart();
    }
  }

  /** Push to talk: the turn is complete. */
  holdEnd() {
    this.#talk.holdEnd();
  }

  /**
   * Tell the server what the person chose: voice, instructions, hands-free or push-to-talk. `changed` is the name of
   * the choice, when one changed: some need another transport, and the conversation moves there.
   */
  async applyPreferences(changed = "") {
    if (!this.isLive) {
      return;
    }
    const { preferred } = this.#choice;
    if (TRANSPORT_CHOICES.includes(changed) && preferred !== this.transportName) {
      await this.restart();
    } else {
      this.#talk.configure();
    }
  }

  // ── Beginning, losing, ending ────────────────────────────────────────────────────────────────────────────────────

  #receive(event) {
    this.#talk.receive(event);
    if (event.type === SERVER.SESSION_CREATED && this.#phase === "reconnecting") {
      this.#begin(event.session);
    }
  }

  #begin(session) {
    this.#talk.begin(session);
    this.liveSince = Date.now();
    this.#enter("live");
  }

  #phaseChanged({ phase, retryAt }) {
    this.retryAt = retryAt;
    if (phase === "queued") {
      this.#talk.closeMicrophone(); // no red light while standing in line
    }
    if (phase === "queued" || phase === "reconnecting") {
      this.#enter(phase);
    }
  }

  #failed({ code, message, reasons }) {
    this.#reset();
    this.#enter(code === "ended" ? "idle" : "error");
    if (code !== "ended") {
      this.#tell("problem", problem(code, message, reasons));
    }
  }

  #reset() {
    this.#takeTurn?.(false);
    this.liveSince = null;
    this.#talk.end();
  }

  /** Back at the head of the line: hold the place until the person says that they are there. */
  async #offerTurn(withMicrophone) {
    this.#enter("your-turn");
    const isTaken = await new Promise((resolve) => {
      this.#takeTurn = resolve;
      setTimeout(resolve, HELD_TURN_MS, false);
    });
    this.#takeTurn = null;
    if (this.#phase !== "your-turn") {
      return false;
    }
    if (!isTaken || (withMicrophone && !(await this.openMicrophone()))) {
      this.stop();
      return false;
    }
    return this.#phase === "your-turn";
  }

  // ── State ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #enter(phase) {
    this.#phase = phase;
    this.#update();
  }

  #update() {
    const state = this.isLive ? this.#talk.state : this.#phase;
    if (state !== this.#state) {
      this.#state = state;
      this.#tell("state", state);
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
