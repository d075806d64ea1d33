// Talk: what is said in an open session. The person's turns go out, the server's events come in.

import * as events from "./events.js";
import { OwnVoice } from "./own_voice.js";
import { problem } from "./readiness.js";
import { Replies } from "./replies.js";
import { Turn } from "./turn.js";
import { chosenSettings, defaultTurnDetection, outputRateHz } from "./session_settings.js";
import { isEcho } from "./echo.js";

const { SERVER } = events;

/**
 * Events: `change` when `state` or `hasMicrophone` may have, `problem` (detail {code, message, reasons}), `solved`
 * (detail: code), `waiting` (detail: for what), `traffic` (detail {direction: "in" | "out", event}).
 */
export class Talk extends EventTarget {
  #sound;
  #conversation;
  #preferences;
  #connection;
  #turn = new Turn();
  #ownVoice;
  #replies = null; // from the first sound on
  #turnDetection = { type: "server_vad" };
  #outputRateHz = 24000;
  #quiet = new Set(); // events whose refusal nobody needs to know
  #talkedOver = null; // the reply during which the caller began to speak

  /** `isLive()`: whether the session is open, and the person's voice may go out. */
  constructor({ sound, conversation, preferences, connection, isLive }) {
    super();
    this.#sound = sound;
    this.#conversation = conversation;
    this.#preferences = preferences;
    this.#connection = connection;
    this.#ownVoice = new OwnVoice({
      sound,
      preferences,
      isTrackSent: () => this.#isTrackSent,
      send: (event) => this.#send(event),
      sendAudio: (pcm) => isLive() && this.#sendAudio(pcm),
    });
    for (const name of ["problem", "solved", "waiting", "change"]) {
      this.#ownVoice.addEventListener(name, ({ detail }) => this.#tell(name, detail));
    }
    this.#turn.addEventListener("change", () => this.#tell("change"));
  }

  /** Of an open session: listening, user-speaking, processing or ai-speaking. */
  get state() {
    return this.#turn.state(this.#replies.isAudible);
  }

  get hasMicrophone() {
    return this.#ownVoice.isOpen;
  }

  get isHolding() {
    return this.#ownVoice.isHeld;
  }

  /** How long the sound of a media track is on its way, in ms, or null while unknown. */
  set trackPlayoutMs(milliseconds) {
    this.#replies.trackPlayoutMs = milliseconds;
  }

  /** The microphone's own track is sent, and only the server can tell where a turn ends. */
  get #isTrackSent() {
    return this.#connection.transportName === "WebRTC";
  }

  // ── Beginning, losing, ending ────────────────────────────────────────────────────────────────────────────────────

  /** Open the loudspeaker. */
  async openSound() {
    await this.#sound.open();
    if (this.#replies) {
      return;
    }
    this.#replies = new Replies(this.#sound.playback, this.#conversation);
    this.#replies.addEventListener("change", () => this.#tell("change"));
  }

  /** Open the microphone, or change to the chosen one. Resolves to whether it is open. */
  async openMicrophone() {
    await this.openSound();
    return this.#ownVoice.open();
  }

  closeMicrophone() {
    this.#ownVoice.close();
  }

  setMuted(isMuted) {
    this.#ownVoice.setMuted(isMuted);
  }

  /** A session has opened: it learns what the person chose, and what was said before. */
  begin(session) {
    this.#outputRateHz = outputRateHz(session);
    this.#turnDetection = defaultTurnDetection(session);
    this.configure();
    const history = this.#conversation.history();
    for (const { id, role, text } of history) {
      this.#send(events.messageCreate(id, role, text));
    }
    if (history.at(-1)?.role === "user") {
      this.#send(events.responseCreate()); // the cut came between a question and its answer
      this.#turn.awaitReply(true);
    }
  }

  /** Tell the server what the person chose: voice, instructions, hands-free or push-to-talk. */
  configure() {
    this.#ownVoice.holdBackTrack();
    const { isSilent } = this.#sound;
    const chosen = { ...this.#preferences, isPushToTalk: this.#preferences.isPushToTalk && !this.#isTrackSent };
    this.#send(events.sessionUpdate(chosenSettings(chosen, { turnDetection: this.#turnDetection, isSilent })));
  }

  /** The connection is gone, and may come back. */
  async lose() {
    this.#forgetTurn();
    await this.#replies.cut();
    this.#conversation.interruptOpen();
  }

  /** The session is over: the microphone closes, and the loudspeaker falls silent. */
  end() {
    this.#forgetTurn();
    this.#ownVoice.close();
    this.#replies?.cut();
    this.#conversation.interruptOpen();
  }

  #forgetTurn() {
    this.#ownVoice.forget();
    this.#turn.forget();
  }

  // ── What the person says ─────────────────────────────────────────────────────────────────────────────────────────

  /** Silence the assistant now; what was not heard is forgotten. */
  async interrupt() {
    if (this.#turn.isReplyDue) {
      this.#sendQuietly(events.responseCancel());
    }
    this.#turn.awaitReply(false);
    await this.#bargeIn();
  }

  /** A typed message. */
  async type(text) {
    this.#ownVoice.giveWay();
    if (this.#turn.isReplyDue || this.#replies.isAudible) {
      await this.interrupt();
    }
    const id = events.identifier("item");
    this.#conversation.addTyped(id, text);
    this.#send(events.messageCreate(id, "user", text));
    this.#send(events.responseCreate());
    this.#turn.awaitReply(true);
  }

  /** Push to talk: from here on the microphone is heard. */
  async holdStart() {
    if (this.hasMicrophone && !this.isHolding) {
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

  // ── What the server says ─────────────────────────────────────────────────────────────────────────────────────────

  receive(event) {
    this.#tell("traffic", { direction: "in", event });
    this.#conversation.receive(event);
    switch (event.type) {
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

  // ── Events and wire ──────────────────────────────────────────────────────────────────────────────────────────────

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
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
