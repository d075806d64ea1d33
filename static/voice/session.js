// VoiceSession: the conversation's state, events in and out, one transport at a time.

import * as events from "./events.js";
import { int16FromBase64 } from "./audio/pcm.js";
import { isEcho } from "./echo.js";
import { Connection } from "./connection.js";
import { MicrophoneError } from "./audio/capture.js";
import { WebSocketTransport } from "./transports/websocket.js";

const { SERVER } = events;
const HELD_TURN_MS = 25000;
const SHORTEST_HOLD_MS = 250;
const TAIL_FRAMES = 4; // what was said while the key went up is still on its way: 128 ms
const REPLY_PATIENCE_MS = 8000;
const ASKING_MS = 600; // longer than this and the browser is asking the person
const WARM_UP_PATIENCE_MS = 30000;
const WARM_UP_STEP_MS = 700;

/**
 * Events: `state` (detail: state), `problem` (detail {code, message, reasons}), `solved` (detail: code),
 * `traffic` (detail {direction: "in" | "out", event}), `congested` (detail: boolean), `waiting` (detail: for what).
 * States: idle, connecting, queued, your-turn, listening, user-speaking, processing, ai-speaking, error, reconnecting.
 */
export class VoiceSession extends EventTarget {
  #sound;
  #conversation;
  #preferences;
  #fetchConfig;
  #connection;
  #phase = "idle"; // idle, connecting, queued, your-turn, live, reconnecting, error
  #state = "idle";
  #isUserSpeaking = false;
  #isAwaitingReply = false;
  #patience = null;
  #responseId = null;
  #turnDetection = { type: "server_vad" };
  #outputRateHz = 24000;
  #firstDeltaAt = new Map();
  #quiet = new Set();
  #talkedOver = null; // the reply during which the caller began to speak
  #heldSince = null;
  #tail = 0;
  #takeTurn = null;

  constructor({ sound, conversation, preferences, fetchConfig, socketPath }) {
    super();
    this.#sound = sound;
    this.#conversation = conversation;
    this.#preferences = preferences;
    this.#fetchConfig = fetchConfig;
    this.#connection = new Connection({
      makeTransport: () => new WebSocketTransport(socketPath, this.#query()),
      diagnose: async () => (await this.#diagnose()) ?? { code: "refused", message: "", reasons: [] },
    });
    this.#connection.addEventListener("event", ({ detail }) => this.#receive(detail));
    this.#connection.addEventListener("phase", ({ detail }) => this.#phaseChanged(detail));
    this.#connection.addEventListener("lost", () => this.#lost());
    this.#connection.addEventListener("failed", ({ detail }) => this.#failed(detail));
    this.#connection.addEventListener("congested", ({ detail }) => {
      this.dispatchEvent(new CustomEvent("congested", { detail }));
    });
    sound.addEventListener("blocked", () => this.#problem("autoplay_blocked"));
    sound.addEventListener("unblocked", () => this.#solved("autoplay_blocked"));
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

  get hasMicrophone() {
    return this.#sound.capture?.isOpen ?? false;
  }

  get isHolding() {
    return this.#heldSince !== null;
  }

  /** When the next attempt to connect is due (epoch ms), while queued or reconnecting. */
  retryAt = null;

  /** When this session began (epoch ms), while live. */
  liveSince = null;

  /** Begin, or go on with, the conversation. Resolves to whether it is live. Call it inside the person's tap. */
  async start({ withMicrophone = true } = {}) {
    if (this.isActive) {
      return this.isLive;
    }
    this.#enter("connecting");
    const hasSound = this.#openSound().then(() => true, () => false); // begun inside the tap, or browsers forbid it
    const obstacle = await this.#obstacle();
    if (!(await hasSound) || (obstacle && obstacle.code !== "at_capacity")) {
      this.#failed(obstacle ?? { code: "unreachable", message: "", reasons: [] });
      return false;
    }
    if (withMicrophone && !(await this.#openMicrophone())) {
      this.#enter("error");
      return false;
    }
    if (this.#phase !== "connecting") {
      return false; // stopped while the browser asked for permission
    }
    const opened = await this.#connection.open();
    if (!opened) {
      return false;
    }
    if (opened.wasQueued && !(await this.#offerTurn())) {
      this.stop();
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

  /** The person takes the held turn after standing in line. */
  takeTurn() {
    this.#takeTurn?.(true);
  }

  hurry() {
    this.#connection.hurry();
  }

  /** Silence the assistant now; what was not heard is forgotten. */
  async interrupt() {
    if (this.#responseId !== null || this.#isAwaitingReply) {
      this.#sendQuietly(events.responseCancel());
    }
    this.#awaitReply(false);
    await this.#bargeIn();
  }

  setMuted(isMuted) {
    if (this.#sound.capture) {
      this.#sound.capture.isMuted = isMuted;
    }
  }

  /** Open (or change) the microphone during a conversation. Resolves to whether it is open. */
  async openMicrophone() {
    return this.#openMicrophone();
  }

  closeMicrophone() {
    this.#sound.capture?.close();
    this.#update();
  }

  /** Send a typed message; connects without a microphone when nothing is connected. Resolves to whether it left. */
  async sendText(text) {
    if (!this.isLive && !(await this.start({ withMicrophone: false }))) {
      return false;
    }
    if (this.#tail > 0) {
      this.#tail = 0;
      this.#send(events.audioClear()); // the spoken turn that was about to be sent gives way
    }
    if (this.#isAwaitingReply || this.#responseId !== null || this.#sound.playback.speaking !== null) {
      await this.interrupt();
    }
    const id = events.identifier("item");
    this.#conversation.addTyped(id, text);
    this.#send(events.messageCreate(id, "user", text));
    this.#send(events.responseCreate());
    this.#awaitReply(true);
    return true;
  }

  /** Push to talk: from here on the microphone is heard. */
  async holdStart() {
    if (!this.isLive || !this.hasMicrophone || this.#heldSince !== null) {
      return;
    }
    this.#heldSince = performance.now();
    this.#isUserSpeaking = true;
    this.#tail = 0;
    this.#send(events.audioClear());
    this.#update();
    await this.interrupt();
  }

  /** Push to talk: the turn is complete. A touch too short for speech is taken back. */
  holdEnd() {
    if (this.#heldSince === null) {
      return;
    }
    const wasShort = performance.now() - this.#heldSince < SHORTEST_HOLD_MS;
    this.#heldSince = null;
    this.#isUserSpeaking = false;
    if (wasShort) {
      this.#send(events.audioClear());
    } else {
      this.#tail = TAIL_FRAMES;
      this.#awaitReply(true);
    }
    this.#update();
  }

  /** Tell the server what the person chose: voice, instructions, hands-free or push-to-talk. */
  applyPreferences() {
    if (this.isLive) {
      this.#send(events.sessionUpdate(this.#settings()));
    }
  }

  /** A change that needs another session, such as the model: the words go along. */
  async restart() {
    if (this.isActive) {
      const withMicrophone = this.hasMicrophone;
      this.stop();
      await this.start({ withMicrophone });
    }
  }

  // ── What the server says ─────────────────────────────────────────────────────────────────────────────────────────

  #receive(event) {
    this.dispatchEvent(new CustomEvent("traffic", { detail: { direction: "in", event } }));
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
        this.#isUserSpeaking = true;
        this.#talkedOver = this.#conversation.find(this.#sound.playback.speaking);
        this.#awaitReply(false);
        this.#bargeIn();
        break;
      case SERVER.SPEECH_STOPPED:
        this.#isUserSpeaking = false;
        this.#awaitReply(event.reason !== "turn_invalid");
        break;
      case SERVER.TRANSCRIPTION_COMPLETED:
        if (!event.transcript.trim()) {
          this.#awaitReply(false);
        } else if (this.#talkedOver && isEcho(event.transcript, this.#talkedOver.text + this.#talkedOver.unheard)) {
          this.#problem("echo");
        }
        break;
      case SERVER.TRANSCRIPTION_FAILED:
        this.#awaitReply(false);
        break;
      case SERVER.RESPONSE_CREATED:
        this.#responseId = event.response.id;
        this.#awaitReply(false);
        break;
      case SERVER.AUDIO_DELTA:
        this.#play(event);
        break;
      case SERVER.AUDIO_DONE:
        this.#sound.playback.end(event.item_id);
        break;
      case SERVER.RESPONSE_DONE:
        this.#responseDone(event.response);
        break;
      case SERVER.ERROR:
        this.#refused(event.error);
        break;
      default:
    }
    this.#update();
  }

  #play({ item_id: itemId, delta }) {
    const pcm = int16FromBase64(delta);
    if (!this.#firstDeltaAt.has(itemId)) {
      this.#firstDeltaAt.set(itemId, performance.now());
    }
    this.#conversation.addAudio(itemId, Int16Array.from(pcm), this.#outputRateHz);
    this.#sound.playback.push(itemId, pcm, this.#outputRateHz);
  }

  #responseDone(response) {
    this.#responseId = null;
    for (const item of response.output ?? []) {
      this.#sound.playback.end(item.id);
    }
    if (response.status === "failed") {
      this.#problem("reply_failed", response.status_details?.error?.message);
    }
  }

  #refused(error) {
    if (!this.#quiet.delete(error.event_id)) {
      this.#awaitReply(false);
      this.#problem("server_error", error.message);
    }
  }

  /** The speaker falls silent at once, and the server learns how much was heard. */
  async #bargeIn() {
    const cut = await this.#sound.playback.flush();
    for (const { itemId, heardMs } of cut) {
      this.#conversation.cutShort(itemId, heardMs);
      this.#sendQuietly(events.itemTruncate(itemId, heardMs));
    }
    this.#update();
  }

  // ── Beginning, losing, ending ────────────────────────────────────────────────────────────────────────────────────

  #begin(session) {
    this.#outputRateHz = outputRateHz(session);
    this.#turnDetection = { type: session.turn_detection?.type ?? "server_vad" };
    this.#send(events.sessionUpdate(this.#settings()));
    const history = this.#conversation.history();
    for (const { id, role, text } of history) {
      this.#send(events.messageCreate(id, role, text));
    }
    this.liveSince = Date.now();
    this.#enter("live");
    if (history.at(-1)?.role === "user") {
      this.#send(events.responseCreate()); // the cut came between a question and its answer
      this.#awaitReply(true);
    }
  }

  #phaseChanged({ phase, retryAt }) {
    this.retryAt = retryAt;
    if (phase === "queued" || phase === "reconnecting") {
      this.#enter(phase);
    } else if (phase === "connecting" && this.#phase === "queued") {
      this.#enter("connecting");
    }
  }

  async #lost() {
    this.#forgetTurn();
    this.#enter("reconnecting");
    const cut = await this.#sound.playback.flush();
    for (const { itemId, heardMs } of cut) {
      this.#conversation.cutShort(itemId, heardMs);
    }
    this.#conversation.interruptOpen();
  }

  #failed(problem) {
    this.#reset();
    this.#enter(problem.code === "ended" ? "idle" : "error");
    if (problem.code !== "ended") {
      this.#problem(problem.code, problem.message, problem.reasons);
    }
  }

  #reset() {
    this.#takeTurn?.(false);
    this.#forgetTurn();
    this.liveSince = null;
    this.#sound.capture?.close();
    this.#sound.playback?.flush();
    this.#conversation.interruptOpen();
  }

  #forgetTurn() {
    this.#isUserSpeaking = false;
    this.#responseId = null;
    this.#heldSince = null;
    this.#tail = 0;
    this.#awaitReply(false);
    this.#firstDeltaAt.clear();
  }

  /** Back at the head of the line: hold the place until the person says that they are there. */
  async #offerTurn() {
    this.#enter("your-turn");
    const isTaken = await new Promise((resolve) => {
      this.#takeTurn = resolve;
      setTimeout(resolve, HELD_TURN_MS, false);
    });
    this.#takeTurn = null;
    return isTaken && this.#phase === "your-turn";
  }

  /** What stands in the way now; a server that is still loading its engines is waited for. */
  async #obstacle() {
    for (let patienceMs = WARM_UP_PATIENCE_MS; ; patienceMs -= WARM_UP_STEP_MS) {
      const obstacle = await this.#diagnose();
      if (obstacle?.code !== "warming_up" || patienceMs <= 0 || this.#phase !== "connecting") {
        return obstacle;
      }
      this.dispatchEvent(new CustomEvent("waiting", { detail: "engines" }));
      await new Promise((resolve) => {
        setTimeout(resolve, WARM_UP_STEP_MS);
      });
    }
  }

  /** What stands in the way of a conversation, {code, message, reasons}, or null. */
  async #diagnose() {
    try {
      const { ready, reasons } = await this.#fetchConfig();
      return ready ? null : { code: reasons[0]?.code ?? "not_ready", message: "", reasons };
    } catch (error) {
      return { code: error.code ?? "unreachable", message: "", reasons: [] };
    }
  }

  // ── Sound ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #openSound() {
    const isFirst = !this.#sound.isOpen;
    await this.#sound.open();
    if (!isFirst) {
      return;
    }
    const { playback, capture } = this.#sound;
    playback.addEventListener("started", ({ detail }) => this.#heardFirst(detail.itemId));
    playback.addEventListener("position", ({ detail }) => {
      this.#conversation.heardUntil(detail.itemId, Math.max(0, detail.playedMs - playback.deviceLatencyMs));
    });
    playback.addEventListener("ended", ({ detail }) => {
      this.#conversation.heardUntil(detail.itemId, Infinity);
      this.#update();
    });
    capture.addEventListener("frame", ({ detail }) => this.#hear(detail.pcm));
    capture.addEventListener("lost", () => {
      this.#problem("microphone_lost");
      this.#update();
    });
  }

  async #openMicrophone() {
    const asking = setTimeout(() => {
      this.dispatchEvent(new CustomEvent("waiting", { detail: "microphone" }));
    }, ASKING_MS);
    try {
      await this.#openSound();
      await this.#sound.capture.open(this.#preferences.microphone);
      for (const code of ["microphone_denied", "microphone_missing", "microphone_busy", "microphone_lost"]) {
        this.#solved(code);
      }
      this.#update();
      return true;
    } catch (error) {
      if (!(error instanceof MicrophoneError)) {
        throw error;
      }
      this.#problem(error.code);
      return false;
    } finally {
      clearTimeout(asking);
    }
  }

  #hear(pcm) {
    if (!this.isLive) {
      return;
    }
    if (!this.#preferences.isPushToTalk || this.#heldSince !== null) {
      this.#sendAudio(pcm);
    } else if (this.#tail > 0) {
      this.#sendAudio(pcm);
      this.#tail -= 1;
      if (this.#tail === 0) {
        this.#send(events.audioCommit());
        this.#send(events.responseCreate());
      }
    }
  }

  #heardFirst(itemId) {
    const arrivedAt = this.#firstDeltaAt.get(itemId);
    if (arrivedAt !== undefined) {
      const waitedMs = performance.now() - arrivedAt + this.#sound.playback.deviceLatencyMs;
      this.#conversation.setPlayout(itemId, Math.round(waitedMs));
      this.#firstDeltaAt.delete(itemId);
    }
    this.#update();
  }

  // ── State ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #enter(phase) {
    this.#phase = phase;
    this.#update();
  }

  #update() {
    const state = this.#phase === "live" ? this.#liveState() : this.#phase;
    if (state !== this.#state) {
      this.#state = state;
      this.dispatchEvent(new CustomEvent("state", { detail: state }));
    }
  }

  #liveState() {
    if (this.#isUserSpeaking) {
      return "user-speaking";
    }
    if (this.#sound.playback.speaking !== null) {
      return "ai-speaking";
    }
    return this.#responseId !== null || this.#isAwaitingReply ? "processing" : "listening";
  }

  /** A reply is expected; when none comes within 8 s (nobody said a word, say) the page listens again. */
  #awaitReply(isAwaiting) {
    clearTimeout(this.#patience);
    this.#isAwaitingReply = isAwaiting;
    if (isAwaiting) {
      this.#patience = setTimeout(() => {
        this.#isAwaitingReply = false;
        this.#update();
      }, REPLY_PATIENCE_MS);
    }
    this.#update();
  }

  #problem(code, message = "", reasons = []) {
    this.dispatchEvent(new CustomEvent("problem", { detail: { code, message: message ?? "", reasons } }));
  }

  #solved(code) {
    this.dispatchEvent(new CustomEvent("solved", { detail: code }));
  }

  #query() {
    return { model: this.#preferences.model, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone };
  }

  #settings() {
    const { voice, instructions, isPushToTalk, isSpoken } = this.#preferences;
    return {
      modalities: isSpoken && !this.#sound.isSilent ? ["text", "audio"] : ["text"],
      voice: voice || null,
      instructions,
      turn_detection: isPushToTalk ? null : this.#turnDetection,
    };
  }

  #sendAudio(pcm) {
    if (this.#connection.sendAudio(pcm)) {
      const event = { type: events.CLIENT.AUDIO_APPEND, audio: `(${pcm.length} samples)` };
      this.dispatchEvent(new CustomEvent("traffic", { detail: { direction: "out", event } }));
    }
  }

  #send(event) {
    if (this.#connection.send(event)) {
      this.dispatchEvent(new CustomEvent("traffic", { detail: { direction: "out", event } }));
    }
  }

  /** Send what the server may refuse without anybody needing to know: the reply may just have ended by itself. */
  #sendQuietly(event) {
    this.#quiet.add(event.event_id);
    this.#send(event);
  }
}

/** Sample rate of the assistant's audio in a session's settings. */
function outputRateHz(session) {
  const nested = session.audio?.output?.format?.sample_rate ?? session.audio?.output?.format?.rate;
  return nested ?? { pcm24: 24000, pcm8: 8000 }[session.output_audio_format] ?? 24000;
}
