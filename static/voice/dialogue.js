// Dialogue: what is said in an open session. The person's turns go out, the server's events come in.

import * as events from "./events.js";
import { CutReplies } from "./cut_replies.js";
import { MicrophoneTurn } from "./microphone_turn.js";
import { Outbox } from "./outbox.js";
import { problem } from "./readiness.js";
import { ResponseAudio } from "./response_audio.js";
import { Turn } from "./turn.js";
import { chosenSettings, continuation, defaultTurnDetection } from "./session_settings.js";
import { UnheardSpeech } from "./unheard_speech.js";
import { Echo } from "./echo.js";

const { SERVER } = events;
const TRACKS = ["AOQ", "WebRTC"]; // transports on which sound comes and goes beside the events

/**
 * Events: `change` when `state` or `hasMicrophone` may have, `problem` (detail {code, message, reasons}), `solved`
 * (detail: code), `waiting` (detail: for what), `traffic` (detail {direction: "in" | "out", event}).
 */
export class Dialogue extends EventTarget {
  #sound;
  #conversation;
  #preferences;
  #connection;
  #outbox;
  #turn = new Turn();
  #microphone;
  #audio = null; // from the first sound on
  #turnDetection = { type: "server_vad" };
  #echo = new Echo();
  #unheard;
  #cutReplies = null; // from the first sound on
  #typedLater = []; // ids of messages that were typed in an outage
  #isTrackPlayed = false; // replies come on a media track
  #isTurnOut = false; // a turn of push to talk has left, and the server has not said that it arrived
  #continued = null; // id of the cut reply that goes on

  /** `isLive()`: whether the session is open, and the person's voice may go out. */
  constructor({ sound, conversation, preferences, connection, isLive }) {
    super();
    this.#sound = sound;
    this.#conversation = conversation;
    this.#preferences = preferences;
    this.#connection = connection;
    this.#outbox = new Outbox(connection);
    this.#outbox.addEventListener("sent", ({ detail: event }) => this.#tell("traffic", { direction: "out", event }));
    this.#microphone = new MicrophoneTurn({
      sound,
      preferences,
      isTrackSent: () => this.#isTrackSent,
      send: (event) => this.#outbox.send(event),
      sendAudio: (pcm) => isLive() && this.#outbox.sendAudio(pcm),
    });
    for (const name of ["problem", "solved", "waiting", "change"]) {
      this.#microphone.addEventListener(name, ({ detail }) => this.#tell(name, detail));
    }
    this.#unheard = new UnheardSpeech(conversation);
    this.#unheard.addEventListener("told", () => this.#tell("problem", problem("not_heard")));
    this.#microphone.addEventListener("speech", () => this.#unheard.speaks(this.#turn.isUserSpeaking));
    this.#turn.addEventListener("change", () => this.#tell("change"));
  }

  /** Of an open session: listening, user-speaking, processing or ai-speaking. */
  get state() {
    return this.#turn.state(this.#audio.isAudible);
  }

  get hasMicrophone() {
    return this.#microphone.isOpen;
  }

  get isHolding() {
    return this.#microphone.isHeld;
  }

  /** How long the sound of a media track is on its way, in ms, or null while unknown. */
  set trackPlayoutMs(milliseconds) {
    this.#audio.trackPlayoutMs = milliseconds;
  }

  /** All the microphone's sound is sent, and only the server can tell where a turn ends. */
  get #isTrackSent() {
    return TRACKS.includes(this.#connection.transportName);
  }

  // ── Beginning, losing, ending ────────────────────────────────────────────────────────────────────────────────────

  /** Open the loudspeaker. */
  async openSound() {
    await this.#sound.open();
    if (this.#audio) {
      return; // opened before, or meanwhile
    }
    this.#audio = new ResponseAudio(this.#sound.playback, this.#conversation);
    this.#cutReplies = new CutReplies(this.#audio, this.#conversation);
    this.#audio.addEventListener("change", () => this.#tell("change"));
  }

  /** Open the microphone, or change to the chosen one. Resolves to whether it is open. */
  async openMicrophone() {
    await this.openSound();
    return this.#microphone.open();
  }

  closeMicrophone() {
    this.#microphone.close();
  }

  setMuted(isMuted) {
    this.#microphone.setMuted(isMuted);
  }

  /**
   * A session has opened: it learns what the person chose, and what was said before, and takes that up, unless the person
   * `isTyping` something else.
   */
  begin(session, { isTyping = false } = {}) {
    this.#tell("solved", "approval"); // another session does not know what was asked for
    this.#unheard.reset();
    this.#typedLater = [];
    this.#isTrackPlayed = this.#isTrackSent;
    this.#turnDetection = defaultTurnDetection(session);
    this.configure();
    const cutOff = isTyping ? null : this.#conversation.takeUpCutOff();
    const history = this.#conversation.history();
    const last = isTyping ? null : history.at(-1);
    for (const { id, role, text } of history) {
      this.#outbox.send(events.messageCreate(id, role, text));
    }
    const { reminders, isSaidAnew } = this.#conversation.reminders.resume(cutOff, last);
    if (reminders.length > 0) {
      this.#outbox.sendQuietly(events.remindersRestore(reminders)); // a model of another service knows none
    }
    if (last?.role === "user") {
      this.#requestReply(); // the cut came between a question and its reply
    } else if (last && cutOff && !isSaidAnew) {
      this.#continued = last.id;
      this.#requestReply({ instructions: continuation(this.#preferences.instructions, cutOff.unheard) });
    }
  }

  /** Tell the server what the person chose: voice, instructions, hands-free or push-to-talk. */
  configure() {
    this.#microphone.holdBackTrack();
    const { isSilent } = this.#sound;
    const chosen = { ...this.#preferences, isPushToTalk: this.#preferences.isPushToTalk && !this.#isTrackSent };
    const session = chosenSettings(chosen, { turnDetection: this.#turnDetection, isSilent });
    this.#outbox.send(events.sessionUpdate(session));
    if (session.turn_detection?.silence_duration_ms) {
      this.#turnDetection = { ...this.#turnDetection, silence_duration_ms: null }; // the server judges again from then on
    }
  }

  /** The connection is gone, and the session may wait. Resolves to the replies not heard to their end, as CutReplies. */
  async pause() {
    if (this.#unheard.lose() || this.isHolding || this.#turn.isUserSpeaking) {
      this.tellUnheard();
    }
    this.#microphone.forget();
    return this.#cutReplies.hold({ isTrackPlayed: this.#isTrackPlayed });
  }

  /** The session goes on over another connection. */
  resume() {
    this.#unheard.reset();
    this.#cutReplies.goOn();
    if (this.#isTrackPlayed !== this.#isTrackSent) {
      this.#isTrackPlayed = this.#isTrackSent;
      this.configure();
    }
    const typed = this.#conversation.history().filter(({ id }) => this.#typedLater.includes(id));
    this.#typedLater = [];
    if (typed.length > 0 && this.#turn.isReplyDue) {
      this.#outbox.sendQuietly(events.responseCancel());
    }
    for (const { id, role, text } of typed) {
      this.#outbox.send(events.messageCreate(id, role, text));
    }
    if (typed.length > 0) {
      this.#requestReply();
    }
  }

  /** The session is lost: another may follow. */
  async lose() {
    if (!this.#cutReplies.isHeld) {
      await this.pause();
    }
    const isTurnLost = this.#isTurnOut;
    this.#forgetTurn();
    if (this.#cutReplies.giveUp() || isTurnLost) {
      this.tellUnheard();
    }
  }

  /** The session is over: the microphone closes, and the loudspeaker falls silent. `isChosen`: the person ended it. */
  async end({ isChosen }) {
    this.#unheard.reset();
    this.#forgetTurn();
    this.#microphone.close();
    const replies = this.#conversation.openReplies;
    await this.#audio?.cut();
    if (isChosen) {
      this.#conversation.endOpen();
    } else {
      this.#conversation.loseOpen(replies);
    }
  }

  #forgetTurn() {
    this.#isTurnOut = false;
    this.#continued = null;
    this.#microphone.forget();
    this.#turn.forget();
  }

  // ── What the person says ─────────────────────────────────────────────────────────────────────────────────────────

  /** Silence the assistant now; what was not heard is forgotten. */
  async interrupt() {
    if (this.#turn.isReplyDue) {
      this.#outbox.sendQuietly(events.responseCancel());
    }
    this.#turn.awaitReply(false);
    await this.#bargeIn();
  }

  /** A typed message. */
  async type(text) {
    this.#microphone.giveWay();
    if (this.#turn.isReplyDue || this.#audio.isAudible) {
      await this.interrupt();
    }
    const id = this.typeLater(text);
    this.#typedLater = []; // it goes out now
    this.#outbox.send(events.messageCreate(id, "user", text));
    this.#outbox.send(events.responseCreate());
    this.#turn.awaitReply(true);
  }

  /** A typed message that goes out when a session opens. */
  typeLater(text) {
    const id = events.identifier("item");
    this.#conversation.addTyped(id, text);
    this.#typedLater.push(id);
    return id;
  }

  /** What the person says to a call that the assistant asked for; the reply goes on from there. */
  approve(requestId, isAllowed) {
    this.#outbox.send(events.approvalCreate(requestId, isAllowed));
    this.#turn.awaitReply(true);
  }

  /** Push to talk: from here on the microphone is heard. */
  async holdStart() {
    if (this.hasMicrophone && !this.isHolding) {
      this.#microphone.hold();
      await this.interrupt();
      if (this.isHolding) {
        this.#turn.userStarted();
      }
    }
  }

  /** Push to talk: the turn is complete. */
  holdEnd() {
    if (this.isHolding) {
      this.#isTurnOut = this.#microphone.release();
      this.#turn.userStopped(this.#isTurnOut);
    }
  }

  /** Tell the user that the server does not hear them. */
  tellUnheard() {
    this.#unheard.tell();
  }

  // ── What the server says ─────────────────────────────────────────────────────────────────────────────────────────

  receive(event) {
    this.#tell("traffic", { direction: "in", event });
    this.#conversation.receive(event);
    this.#audio.receive(event);
    switch (event.type) {
      case SERVER.SPEECH_STARTED:
        this.#echo.speechStarted(this.#audio.speaking);
        this.#unheard.notice();
        this.#turn.userStarted();
        this.#bargeIn();
        break;
      case SERVER.SPEECH_STOPPED:
        this.#echo.speechStopped(event);
        this.#turn.userStopped(event.reason !== "turn_invalid");
        break;
      case SERVER.AUDIO_COMMITTED:
        this.#isTurnOut = false;
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
      return;
    }
    this.#tell("solved", "not_heard");
    if (this.#echo.isIn(words)) {
      this.#tell("problem", problem("echo"));
    }
  }

  #responseDone(response) {
    this.#turn.replyEnded();
    const continued = this.#continued;
    this.#continued = null;
    if (response.status === "failed" && continued) {
      this.#outbox.send(events.itemDelete(continued)); // not every model can go on with a reply: then it is given anew
      this.#requestReply();
    } else if (response.status === "failed") {
      this.#tell("problem", problem("reply_failed", response.status_details?.error?.message));
    }
  }

  /** Ask for a reply, which follows by itself where the person is speaking already. */
  #requestReply(response) {
    this.#outbox.sendQuietly(events.responseCreate(response));
    this.#turn.awaitReply(true);
  }

  #refused(error) {
    if (!this.#outbox.forgives(error)) {
      this.#turn.awaitReply(false);
      this.#tell("problem", problem("server_error", error.message));
    }
  }

  /** The loudspeaker falls silent at once, and the server learns how much was heard. */
  async #bargeIn() {
    for (const { itemId, heardMs } of await this.#audio.cut()) {
      this.#outbox.sendQuietly(events.itemTruncate(itemId, heardMs));
    }
    this.#audio.duck(false);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
