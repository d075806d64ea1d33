// The person's voice on its way out: the microphone, and whether all of it is sent or what is said while a key is held.

import { MicrophoneError } from "./audio/capture.js";
import { HeldTrack, PushToTalk } from "./push_to_talk.js";
import { SpeechMeter } from "./speech_meter.js";
import { problem } from "./readiness.js";

const ASKING_MS = 600; // longer than this and the browser is asking the person
const MICROPHONE_PROBLEMS = ["microphone_found", "microphone_denied", "microphone_missing", "microphone_busy", "microphone_lost", "insecure"];

/**
 * Events: `problem` (detail {code, message, reasons}), `solved` (detail: code), `waiting` (detail: for what), `change`
 * when the microphone opened or was lost, `speech` when the person begins to speak into it, by loudness alone.
 */
export class MicrophoneTurn extends EventTarget {
  #sound;
  #preferences;
  #isTrackSent;
  #sendAudio;
  #pieces;
  #heldTrack;
  #meter = new SpeechMeter();
  #isListening = false;

  /**
   * `isTrackSent()`: whether the microphone's own track carries the voice now, and only the server can tell where a turn
   * ends; otherwise `sendAudio(pcm)` puts it on the wire piece by piece, and `send(event)` what ends a turn.
   */
  constructor({ sound, preferences, isTrackSent, send, sendAudio }) {
    super();
    this.#sound = sound;
    this.#preferences = preferences;
    this.#isTrackSent = isTrackSent;
    this.#sendAudio = sendAudio;
    this.#pieces = new PushToTalk(send, sendAudio);
    this.#heldTrack = new HeldTrack(sound);
  }

  /** Whether the microphone is open. */
  get isOpen() {
    return this.#sound.capture?.isOpen ?? false;
  }

  /** Open the microphone of an open sound, or change to the chosen one. Resolves to whether it is open. */
  async open() {
    this.#listen();
    const asking = setTimeout(() => this.#tell("waiting", "microphone"), ASKING_MS);
    try {
      await this.#sound.capture.open(this.#preferences.microphone);
      for (const code of MICROPHONE_PROBLEMS) {
        this.#tell("solved", code);
      }
      this.#tell("change");
      return true;
    } catch (error) {
      if (!(error instanceof MicrophoneError)) {
        throw error;
      }
      this.#tell("problem", problem(error.code));
      return false;
    } finally {
      clearTimeout(asking);
    }
  }

  close() {
    this.#sound.capture?.close();
  }

  setMuted(isMuted) {
    if (this.#sound.capture) {
      this.#sound.capture.isMuted = isMuted;
    }
  }

  // ── Push to talk ─────────────────────────────────────────────────────────────────────────────────────────────────

  get isHeld() {
    return this.#pushToTalk.isHeld;
  }

  /** From here on the microphone is heard. */
  hold() {
    this.#pushToTalk.start();
  }

  /** The turn is complete. Returns whether one goes out, as far as this side can tell. */
  release() {
    return this.#pushToTalk.end();
  }

  /** The spoken turn that was about to go out gives way to something else. */
  giveWay() {
    this.#pushToTalk.giveWay();
  }

  /** The connection is gone, and a turn in progress with it. */
  forget() {
    this.#pieces.forget();
    this.#heldTrack.forget();
  }

  /** A track is sent all the time: for push to talk, it is silent until the key is held. */
  holdBackTrack() {
    this.#sound.capture.isHeldBack = this.#preferences.isPushToTalk && this.#isTrackSent();
  }

  get #pushToTalk() {
    return this.#isTrackSent() ? this.#heldTrack : this.#pieces;
  }

  #listen() {
    if (this.#isListening) {
      return;
    }
    this.#isListening = true;
    this.#sound.capture.addEventListener("frame", ({ detail }) => this.#hear(detail.pcm));
    this.#sound.capture.addEventListener("lost", () => {
      this.#tell("problem", problem("microphone_lost"));
      this.#tell("change");
    });
  }

  #hear(pcm) {
    if (this.#meter.hear(pcm) && !this.#preferences.isPushToTalk) {
      this.#tell("speech");
    }
    if (this.#preferences.isPushToTalk) {
      this.#pushToTalk.hear(pcm);
    } else {
      this.#sendAudio(pcm);
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
