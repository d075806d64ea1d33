// How loud each side is, beside the words that say what happens now.

import { meterLevel } from "../audio/pcm.js";
import { byId } from "./dom.js";

const FRAME_MS = 50;

export class Levels {
  #meters;
  #shownAt = 0;
  #session;

  /** `sound` has both sides: the microphone, and the loudspeaker. */
  constructor(session, sound) {
    this.#session = session;
    this.#meters = [
      { meter: byId("level-user"), readLevel: () => sound.capture?.level },
      { meter: byId("level-assistant"), readLevel: () => sound.playback?.level },
    ];
    requestAnimationFrame((at) => this.#frame(at));
  }

  #frame(at) {
    requestAnimationFrame((next) => this.#frame(next));
    if (at - this.#shownAt < FRAME_MS) {
      return;
    }
    this.#shownAt = at;
    for (const { meter, readLevel } of this.#meters) {
      meter.hidden = !this.#session.isLive;
      const steps = this.#session.isLive ? Math.round(meterLevel(readLevel() ?? 0) * 20) / 20 : 0;
      if (meter.dataset.level !== String(steps)) {
        meter.dataset.level = String(steps);
        meter.style.setProperty("--level", String(steps));
      }
    }
  }
}
