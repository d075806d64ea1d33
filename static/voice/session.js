// VoiceSession: the conversation's state, events in and out, one transport at a time.

import * as events from "./events.js";
import { Connection } from "./connection.js";
import { OwnVoice } from "./own_voice.js";
import { Readiness, problem } from "./readiness.js";
import { Replies } from "./replies.js";
import { TransportChoice } from "./transports/choice.js";
import { Turn } from "./turn.js";
import { chosenSettings, defaultTurnDetection, outputRateHz } from "./session_settings.js";
import { isEcho } from "./echo.js";

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
  #sound;
  #conversation;
  #preferences;
  #readiness;
  #choice;
  #connection;
  #turn = new Turn();
  #ownVoice;
  #replies = null; // from the first sound on
  #phase = "idle"; // idle, connecting, queued, your-turn, live, reconnecting, error
  #state = "idle";
  #turnDetection = { type: "server_vad" };
  #outputRateHz = 24000;
  #quiet = new Set(); // events whose refusal nobody needs to know
  #talkedOver = null; // the reply during which the caller began to speak
  #takeTurn = null;

  /** When the next attempt to connect is due (epoch ms), while queued or reconnecting. */
  retryAt = null;

  /** When this session began (epoch ms), while live. */
  liveSince = null;

  constructor({ sound, conversation, preferences, fetchConfig }) {
    super();
    this.#sound = sound;
    this.#conversation = conversation;
    this.#preferences = preferences;
    this.#readiness = new Readiness(fetchConfig);
    this.#ownVoice = new OwnVoice({
      sound,
      preferences,
      isTrackSent: () => this.#isTrackSent,
      send: (event) => this.#send(event),
      sendAudio: (pcm) => this.isLive && this.#sendAudio(pcm),
    });
    this.#choice = new TransportChoice({ preferences, sound, readiness: this.#readiness });
    this.#connection = new Connection({
      makeTransport: (failed) => this.#choice.make(failed),
      diagnose: async (failed) => (await this.#readiness.obstacle()) ?? refusal(failed.at(-1)?.failure),
    });
    this.#connection.addEventListener("event", ({ detail }) => this.#receive(detail));
    this.#connection.addEventListener("phase", ({ detail }) => this.#phaseChanged(detail));
    this.#connection.addEventListener("lost", () => this.#lost());
    this.#connection.addEventListener("failed", ({ detail }) => this.#failed(detail));
    this.#connection.addEventListener("congested", ({ detail }) => this.#tell("congested", detail));
    this.#connection.addEventListener("quality", ({ detail }) => {
      this.#replies.trackPlayoutMs = detail.playoutMs;
      this.#tell("quality", detail);
    });
    this.#connection.addEventListener("fallback", ({ detail }) => {
      this.#tell("problem", problem(detail?.kind === "no_path" ? "no_udp" : "no_webrtc"));
    });
    for (const name of ["problem", "solved", "waiting"]) {
      this.#ownVoice.addEventListener(name, ({ detail }) => this.#tell(name, detail));
    }
    this.#ownVoice.addEventListener("change", () => this.#update());
    this.#turn.addEventListener("change", () => this.#update());
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
    return this.#ownVoice.isOpen;
  }

  get isHolding() {
    return this.#ownVoice.isHeld;
  }

  /** The microphone's own track is sent, and only the server can tell where a turn ends. */
  get #isTrackSent() {
    return this.transportName === "WebRTC";
  }

  // ── What the person does ─────────────────────────────────────────────────────────────────────────────────────────

  /** Begin, or go on with, the conversation. Resolves to whether it is live. Call it inside the person's tap. */
  async start({ withMicrophone = true } = {}) {
    if (this.isActive) {
      return this.isLive;
    }
    this.#enter("connecting");
    const hasSound = this.#openSound().then(() => true, () => false); // begun inside the tap, or browsers forbid it
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
      this.#ownVoice.close(); // stopped while the browser asked for permission
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
  async interrupt() {
    if (this.#turn.isReplyDue) {
      this.#sendQuietly(events.responseCancel());
    }
    this.#turn.awaitReply(false);
    await this.#bargeIn();
  }

  setMuted(isMuted) {
    this.#ownVoice.setMuted(isMuted);
  }

  /** Open the microphone, or change to the chosen one. Resolves to whether it is open. */
  async openMicrophone() {
    await this.#openSound();
    return this.#ownVoice.open();
  }

  /** Send a typed message; connects without a microphone when nothing is connected. Resolves to whether it left. */
  async sendText(text) {
    if (!this.isLive && !(await this.start({ withMicrophone: false }))) {
      return false;
    }
    this.#ownVoice.giveWay();
    if (this.#turn.isReplyDue || this.#replies.isAudible) {
      await this.interrupt();
    }
    const id = events.identifier("item");
    this.#conversation.addTyped(id, text);
    this.#send(events.messageCreate(id, "user", text));
    this.#send(events.responseCreate());
    this.#turn.awaitReply(true);
    return true;
  }

  /** Push to talk: from here on the microphone is heard. */
  async holdStart() {
    if (this.isLive && this.hasMicrophone && !this.isHolding) {
      this.#ownVoice.hold();
      await this.interrupt();
      if (this.isHolding) {
        this.#turn.userStarted();
      }
    }
  }

  /** Push to talk: the turn is complete. */
  holdEnd() {
    if (this.isHolding) {
      this.#turn.userStopped(this.#ownVoice.release());
    }
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
      this.#send(this.#settingsUpdate());
    }
  }

  // ── What the server says ─────────────────────────────────────────────────────────────────────────────────────────

  #receive(event) {
    this.#tell("traffic", { direction: "in", event });
    this.#conversation.receive(event);
    switch (event.type) {
      case SERVER.SESSION_CREATED:
        if (this.#phase === "reconnecting") {
          this.#begin(event.session);
        }
        break;
      case SERVER.SESSION_UPDATED:
        this.#outputRateHz = outputRateHz(event.session);
        break;
      case SERVER.SPEECH_STARTED:
        this.#talkedOver = this.#replies.speaking;
        this.#turn.userStarted();
        this.#bargeIn();
        break;
      case SERVER.SPEECH_STOPPED:
        this.#turn.userStopped(event.reason !== "turn_invalid");
        break;
      case SERVER.TRANSCRIPTION_COMPLETED:
        this.#transcribed(event.transcript);
        break;
      case SERVER.TRANSCRIPTION_FAILED:
        this.#turn.awaitReply(false);
        break;
      case SERVER.RESPONSE_CREATED:
        this.#turn.replyStarted(event.response.id);
        break;
      case SERVER.CONTENT_PART_ADDED:
        if (event.part.type === "audio") {
          this.#replies.expect(event.item_id);
        }
        break;
      case SERVER.AUDIO_DELTA:
        this.#replies.play(event, this.#outputRateHz);
        break;
      case SERVER.AUDIO_DONE:
        this.#replies.end(event.item_id);
        break;
      case SERVER.RESPONSE_DONE:
        this.#responseDone(event.response);
        break;
      case SERVER.ERROR:
        this.#refused(event.error);
        break;
      default:
    }
  }

  #transcribed(words) {
    if (!words.trim()) {
      this.#turn.awaitReply(false);
    } else if (this.#talkedOver && isEcho(words, this.#talkedOver.text + this.#talkedOver.unheard)) {
      this.#tell("problem", problem("echo"));
    }
  }

  #responseDone(response) {
    this.#turn.replyEnded();
    for (const item of response.output ?? []) {
      this.#replies.end(item.id);
    }
    if (response.status === "failed") {
      this.#tell("problem", problem("reply_failed", response.status_details?.error?.message));
    }
  }

  #refused(error) {
    if (!this.#quiet.delete(error.event_id)) {
      this.#turn.awaitReply(false);
      this.#tell("problem", problem("server_error", error.message));
    }
  }

  /** The loudspeaker falls silent at once, and the server learns how much was heard. */
  async #bargeIn() {
    for (const { itemId, heardMs } of await this.#replies.cut()) {
      this.#sendQuietly(events.itemTruncate(itemId, heardMs));
    }
  }

  // ── Beginning, losing, ending ────────────────────────────────────────────────────────────────────────────────────

  #begin(session) {
    this.#outputRateHz = outputRateHz(session);
    this.#turnDetection = defaultTurnDetection(session);
    this.#send(this.#settingsUpdate());
    const history = this.#conversation.history();
    for (const { id, role, text } of history) {
      this.#send(events.messageCreate(id, role, text));
    }
    this.liveSince = Date.now();
    this.#enter("live");
    if (history.at(-1)?.role === "user") {
      this.#send(events.responseCreate()); // the cut came between a question and its answer
      this.#turn.awaitReply(true);
    }
  }

  #phaseChanged({ phase, retryAt }) {
    this.retryAt = retryAt;
    if (phase === "queued") {
      this.#ownVoice.close(); // no red light while standing in line
    }
    if (phase === "queued" || phase === "reconnecting") {
      this.#enter(phase);
    }
  }

  async #lost() {
    this.#forgetTurn();
    await this.#replies.cut();
    this.#conversation.interruptOpen();
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
    this.#forgetTurn();
    this.liveSince = null;
    this.#ownVoice.close();
    this.#replies?.cut();
    this.#conversation.interruptOpen();
  }

  #forgetTurn() {
    this.#ownVoice.forget();
    this.#turn.forget();
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

  // ── Sound ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #openSound() {
    await this.#sound.open();
    if (this.#replies) {
      return;
    }
    this.#replies = new Replies(this.#sound.playback, this.#conversation);
    this.#replies.addEventListener("change", () => this.#update());
  }

  // ── State and wire ───────────────────────────────────────────────────────────────────────────────────────────────

  #enter(phase) {
    this.#phase = phase;
    this.#update();
  }

  #update() {
    const state = this.isLive ? this.#turn.state(this.#replies.isAudible) : this.#phase;
    if (state !== this.#state) {
      this.#state = state;
      this.#tell("state", state);
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #settingsUpdate() {
    this.#ownVoice.holdBackTrack();
    const { isSilent } = this.#sound;
    const chosen = { ...this.#preferences, isPushToTalk: this.#preferences.isPushToTalk && !this.#isTrackSent };
    return events.sessionUpdate(chosenSettings(chosen, { turnDetection: this.#turnDetection, isSilent }));
  }

  #sendAudio(pcm) {
    if (this.#connection.sendAudio(pcm)) {
      const event = { type: events.CLIENT.AUDIO_APPEND, audio: `(${pcm.length} samples)` };
      this.#tell("traffic", { direction: "out", event });
    }
  }

  #send(event) {
    if (this.#connection.send(event)) {
      this.#tell("traffic", { direction: "out", event });
    }
  }

  /** Send what the server may refuse without anybody needing to know: the reply may just have ended by itself. */
  #sendQuietly(event) {
    this.#quiet.add(event.event_id);
    this.#send(event);
  }
}
