// VoiceSession: the conversation's state, from the first tap to the end, over one transport at a time.

import * as events from "./events.js";
import { Connection } from "./connection.js";
import { HeldTurn } from "./held_turn.js";
import { Deadline } from "./pause.js";
import { Readiness, fallbackProblems, problem, refusal } from "./readiness.js";
import { Dialogue } from "./dialogue.js";
import { TransportChoice } from "./transports/choice.js";

const { SERVER } = events;
const OUTAGE_TOLD_MS = 5000; // most are over before anyone could read about them
const ENDING_TOLD_MS = 20000;
const TRANSPORT_CHOICES = ["transport", "isPushToTalk"];

/**
 * Events: `state` (detail: state), `problem` (detail {code, message, reasons}), `solved` (detail: code),
 * `traffic` (detail {direction: "in" | "out", event}), `congested` (detail: boolean), `quality` (detail {rttMs,
 * lossShare, playoutMs}), `waiting` (detail: for what), `retry` when `retryAt` has changed, `overheard` (detail: whether an
 * operator listens in).
 * States: idle, connecting, queued, your-turn, listening, user-speaking, processing, ai-speaking, error, reconnecting.
 */
export class VoiceSession extends EventTarget {
  #readiness;
  #choice;
  #connection;
  #dialogue;
  #phase = "idle"; // idle, connecting, queued, your-turn, live, reconnecting, error
  #state = "idle";
  #turn = new HeldTurn();
  #outage = new Deadline();
  #ending = new Deadline();
  #tabs;
  #starts = 0;
  #isRestarting = false;
  #isMicrophoneWanted = true;

  /** What was in the way of coming back, by the code of its notice, or empty. */
  outageReason = "";

  /** When the next attempt to connect is due (epoch ms), while queued or reconnecting; null when nothing is due. */
  retryAt = null;

  /** Place in the queue of a full server, from 1, or null. */
  position = null;

  /** When this session began (epoch ms), while live. */
  liveSince = null;

  constructor({ sound, conversation, preferences, tabs, fetchConfig }) {
    super();
    this.#tabs = tabs;
    this.#readiness = new Readiness(fetchConfig);
    this.#choice = new TransportChoice({ preferences, sound, readiness: this.#readiness });
    this.#connection = new Connection({
      makeTransport: (failed, query) => this.#choice.make(failed, query),
      pauseReplies: () => this.#dialogue.pause(),
      diagnose: async (failed) => (await this.#readiness.obstacle({ waits: true })) ?? refusal(failed),
    });
    this.#dialogue = new Dialogue({ sound, conversation, preferences, connection: this.#connection, isLive: () => this.isLive });
    this.#connection.addEventListener("event", ({ detail }) => this.#receive(detail));
    this.#connection.addEventListener("phase", ({ detail }) => this.#phaseChanged(detail));
    this.#connection.addEventListener("lost", () => this.#dialogue.lose());
    this.#connection.addEventListener("resumed", () => this.#resume());
    this.#connection.addEventListener("failed", ({ detail }) => this.#failed(detail));
    this.#connection.addEventListener("congested", ({ detail }) => this.#tell("congested", detail));
    this.#connection.addEventListener("quality", ({ detail }) => {
      this.#dialogue.trackPlayoutMs = detail.playoutMs;
      this.#tell("quality", detail);
    });
    this.#connection.addEventListener("fallback", ({ detail }) => {
      fallbackProblems(detail).forEach((told) => this.#tell("problem", told));
    });
    for (const name of ["problem", "solved", "waiting", "traffic"]) {
      this.#dialogue.addEventListener(name, ({ detail }) => this.#tell(name, detail));
    }
    this.#dialogue.addEventListener("change", () => this.#update());
    tabs.addEventListener("taken", () => {
      this.stop();
      this.#tell("problem", problem("moved"));
    });
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

  /** Why a better transport is not used, one sentence each. */
  get whyNotBetter() {
    return this.#choice.whyNot(this.transportName);
  }

  get hasMicrophone() {
    return this.#dialogue.hasMicrophone;
  }

  get isHolding() {
    return this.#dialogue.isHolding;
  }

  // ── What the person does ─────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Begin, or go on with, the conversation; `isTyping`: with a message that follows. Resolves to whether it is live;
   * while another tab talks, only if this one `takesOver`. Call it inside the person's tap.
   */
  async start({ withMicrophone = true, takesOver = false, isTyping = false } = {}) {
    if (this.isActive) {
      return this.isLive;
    }
    this.#isMicrophoneWanted = withMicrophone;
    this.#starts += 1;
    const start = this.#starts;
    const isWanted = () => this.#phase === "connecting" && start === this.#starts;
    this.#enter("connecting");
    const opening = this.#dialogue.openSound().then(() => true, () => false); // begun inside the tap, or browsers forbid it
    const mayTalk = await this.#tabs.talk({ takesOver });
    if (!isWanted()) {
      this.#leave();
      return false;
    }
    if (!mayTalk) {
      this.#failed(problem("other_tab"));
      return false;
    }
    const obstacle = await this.#readiness.patientObstacle(isWanted, () => this.#tell("waiting", "engines"));
    const hasSound = await opening;
    if (!isWanted()) {
      return false;
    }
    if (!hasSound || (obstacle && obstacle.code !== "at_capacity")) {
      this.#failed(obstacle ?? problem("unreachable"));
      return false;
    }
    const hasMicrophone = !withMicrophone || (await this.openMicrophone());
    if (!isWanted()) {
      this.#leave(); // stopped while the browser asked for permission
      return false;
    }
    if (!hasMicrophone) {
      this.#enter("idle"); // a notice says why; typing works
      return false;
    }
    const opened = await this.#connection.open();
    if (!opened || (opened.wasQueued && !(await this.#offerTurn(withMicrophone)))) {
      return false;
    }
    this.#begin(opened.session, { isTyping });
    return true;
  }

  /** What came too late for a start that was stopped is given back, unless another start has use for it. */
  #leave() {
    if (!this.isActive) {
      this.#tabs.release();
      this.#dialogue.closeMicrophone();
    }
  }

  /** Talk in this tab, as it was about to, instead of in the other. Resolves to whether the conversation is live. */
  takeOver() {
    return this.start({ withMicrophone: this.#isMicrophoneWanted, takesOver: true });
  }

  /** End the conversation; its words stay, and start() goes on from them. */
  stop() {
    this.#connection.send(events.sessionFinish());
    this.#connection.close();
    this.#reset({ isChosen: true });
    this.#enter("idle");
  }

  /** A change that needs another session, such as the model: the words go along. */
  async restart() {
    if (this.isActive) {
      const withMicrophone = this.hasMicrophone;
      this.#isRestarting = true;
      this.stop();
      this.#isRestarting = false;
      await this.start({ withMicrophone });
    }
  }

  /** The person takes the held turn after standing in line. */
  takeTurn() {
    this.#turn.take();
  }

  /** Come back now instead of after the pause. */
  hurry() {
    this.#connection.hurry();
  }

  /** Silence the assistant now; what was not heard is forgotten. */
  interrupt() {
    return this.#dialogue.interrupt();
  }

  setMuted(isMuted) {
    this.#dialogue.setMuted(isMuted);
  }

  /** Open the microphone, or change to the chosen one. Resolves to whether it is open. */
  openMicrophone() {
    return this.#dialogue.openMicrophone();
  }

  /**
   * Send a typed message, in an outage when it is over; connects without a microphone when nothing is connected.
   * Resolves to whether it is taken care of.
   */
  async sendText(text) {
    if (this.#phase === "reconnecting") {
      this.#dialogue.typeLater(text);
      return true;
    }
    if (!this.isLive && !(await this.start({ withMicrophone: false, isTyping: true }))) {
      return false;
    }
    await this.#dialogue.type(text);
    return true;
  }

  /** Allow or deny a call that the assistant asked for. Returns whether the server is told. */
  approve(requestId, isAllowed) {
    if (this.isLive) {
      this.#dialogue.approve(requestId, isAllowed);
    }
    return this.isLive;
  }

  /** Push to talk: from here on the microphone is heard. */
  async holdStart() {
    if (this.isLive) {
      await this.#dialogue.holdStart();
    } else if (this.#phase === "reconnecting") {
      this.#dialogue.tellUnheard();
    }
  }

  /** Push to talk: the turn is complete. */
  holdEnd() {
    this.#dialogue.holdEnd();
  }

  /**
   * Tell the server what the person chose: voice, instructions, hands-free or push-to-talk. `changed` is the name of
   * the choice, when one changed: some need another transport, and the conversation moves there.
   */
  async applyPreferences(changed = "") {
    if (!this.isLive) {
      return;
    }
    if (TRANSPORT_CHOICES.includes(changed) && this.#choice.preferred !== this.transportName) {
      await this.restart();
    } else {
      this.#dialogue.configure();
    }
  }

  // ── Beginning, losing, ending ────────────────────────────────────────────────────────────────────────────────────

  #receive(event) {
    this.#dialogue.receive(event);
    if (event.session) {
      this.#tell("overheard", event.session.operator_listening === true);
    }
    if (event.type === SERVER.SESSION_CREATED && this.#phase === "reconnecting") {
      this.#begin(event.session);
    }
  }

  #begin(session, about) {
    this.#dialogue.begin(session, about);
    this.liveSince = Date.now();
    this.#ending.clear();
    const limitMs = this.#readiness.config.session_limit_s * 1000;
    const leftMs = Math.min(ENDING_TOLD_MS, limitMs / 2);
    this.#ending.set(limitMs - leftMs, () => this.#tell("problem", { ...problem("session_ending"), leftS: leftMs / 1000 }));
    this.#enter("live");
  }

  #resume() {
    this.#dialogue.resume();
    this.#enter("live");
  }

  #phaseChanged({ phase, retryAt, reason, position }) {
    this.retryAt = retryAt;
    this.position = position;
    this.outageReason = reason;
    if (phase === "queued") {
      this.#dialogue.closeMicrophone(); // no red light while standing in line
    }
    if (phase === "queued" || phase === "reconnecting") {
      this.#enter(phase);
      this.#tell("retry");
    }
  }

  #failed({ code, message, reasons }) {
    this.#reset({ isChosen: false });
    this.#enter(["ended", "other_tab", "session_over"].includes(code) ? "idle" : "error");
    if (code !== "ended") {
      this.#tell("problem", problem(code, message, reasons));
    }
  }

  #reset(end) {
    this.#turn.giveUp();
    this.liveSince = null;
    this.#ending.clear();
    this.#tell("solved", "session_ending");
    this.#tell("solved", "approval");
    this.#tell("overheard", false);
    this.#dialogue.end(end);
  }

  /** Back at the head of the line: hold the place until the person says that they are there. */
  async #offerTurn(withMicrophone) {
    this.#enter("your-turn");
    const isTaken = await this.#turn.offer();
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
    if (phase === "reconnecting" && this.#phase !== phase) {
      this.#outage.set(OUTAGE_TOLD_MS, () => this.#tell("problem", problem("connection_lost")));
    }
    this.#phase = phase;
    if (!this.isActive && !this.#isRestarting) {
      this.#tabs.release();
    }
    if (phase !== "reconnecting") {
      this.#outage.clear();
      this.#tell("solved", "connection_lost");
    }
    this.#update();
  }

  #update() {
    const state = this.isLive ? this.#dialogue.state : this.#phase;
    if (state !== this.#state) {
      this.#state = state;
      this.#tell("state", state);
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
