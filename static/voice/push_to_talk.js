// Push to talk: sound goes out while the key is held; letting go ends the turn.

import * as events from "./events.js";

const SHORTEST_HOLD_MS = 250;
const TAIL_MS = 128;
const TAIL_FRAMES = 4; // what was said while the key went up is still on its way: 128 ms

/** Where we send the sound piece by piece, and end turns by hand. */
export class PushToTalk {
  #send;
  #sendAudio;
  #heldSince = null;
  #tail = 0;

  /** `send(event)` and `sendAudio(pcm)` put things on the wire. */
  constructor(send, sendAudio) {
    this.#send = send;
    this.#sendAudio = sendAudio;
  }

  get isHeld() {
    return this.#heldSince !== null;
  }

  start() {
    this.#heldSince = performance.now();
    this.#tail = 0;
    this.#send(events.audioClear());
  }

  /** Returns whether a turn goes out; a touch too short for speech is taken back. */
  end() {
    const wasShort = performance.now() - this.#heldSince < SHORTEST_HOLD_MS;
    this.#heldSince = null;
    if (wasShort) {
      this.#send(events.audioClear());
    } else {
      this.#tail = TAIL_FRAMES;
    }
    return !wasShort;
  }

  /** A frame from the microphone. */
  hear(pcm) {
    if (this.isHeld) {
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

  /** The spoken turn that was about to go out gives way to something else. */
  giveWay() {
    if (this.#tail > 0) {
      this.#tail = 0;
      this.#send(events.audioClear());
    }
  }

  forget() {
    this.#heldSince = null;
    this.#tail = 0;
  }
}

/** Where the microphone's own track is sent: it is silent unless held, and the server notices the end of the turn. */
export class HeldTrack {
  #sound;
  #isHeld = false;

  constructor(sound) {
    this.#sound = sound;
  }

  get isHeld() {
    return this.#isHeld;
  }

  start() {
    this.#isHeld = true;
    this.#sound.capture.isHeldBack = false;
  }

  /** Returns whether a turn goes out: the server will say. */
  end() {
    this.#isHeld = false;
    setTimeout(() => {
      this.#sound.capture.isHeldBack = !this.#isHeld;
    }, TAIL_MS);
    return false;
  }

  hear() {}

  giveWay() {}

  forget() {
    this.#isHeld = false;
  }
}
