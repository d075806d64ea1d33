// The page's one AudioContext with its two ends: capture and playback.

import { Capture } from "./capture.js";
import { Playback, SilentPlayback } from "./playback.js";
import { Recording } from "./recording.js";

/** Events: `blocked` when the browser refuses to play until the person taps, `unblocked` afterwards. */
export class Sound extends EventTarget {
  #context = null;
  #opening = null;
  #worklets;
  #sinkId = "";

  /** `worklets`: {capture, playback}, the addresses of the two worklet modules as the static storage names them. */
  constructor(worklets) {
    super();
    this.#worklets = worklets;
    this.capture = null;
    this.playback = null;
    this.recording = null;
  }

  get isOpen() {
    return this.#context !== null;
  }

  /** Browsers give worklets to secure pages only. */
  get isSilent() {
    return !window.isSecureContext;
  }

  get canChooseSpeaker() {
    return "setSinkId" in AudioContext.prototype;
  }

  /** Make context and playback; call it inside the person's tap. Rejects when the worklet cannot be fetched. */
  async open() {
    if (this.#context) {
      const resumed = this.resume();
      await this.#opening;
      await resumed;
      return;
    }
    this.#opening = this.#make();
    await this.#opening;
  }

  async #make() {
    const context = new AudioContext({ latencyHint: "interactive" });
    const playback = this.isSilent ? new SilentPlayback() : new Playback(context, this.#worklets.playback);
    this.#context = context;
    const resumed = this.resume();
    try {
      await playback.open();
    } catch (error) {
      this.#context = null;
      await context.close();
      throw error;
    }
    this.playback = playback;
    this.capture = new Capture(context, this.#worklets.capture);
    context.addEventListener("statechange", () => this.#stateChanged());
    this.capture.addEventListener("frame", ({ detail }) => this.recording?.addMicrophone(detail.pcm, detail.at));
    playback.addEventListener("rendered", ({ detail }) => {
      this.recording?.addSpeaker(detail.samples, context.sampleRate, detail.at);
    });
    await this.setSpeaker(this.#sinkId);
    await resumed;
  }

  /** Let sound out; resolves although the browser may go on blocking (then `blocked` was told). */
  async resume() {
    if (!this.#context || this.#context.state === "running") {
      return;
    }
    const running = this.#context.resume().then(() => true, () => false);
    const patience = new Promise((resolve) => {
      setTimeout(resolve, 400, false); // a blocked context neither resolves nor rejects
    });
    if (!(await Promise.race([running, patience])) && this.#context.state !== "running") {
      this.dispatchEvent(new Event("blocked"));
    }
  }

  /** Play through this device; where the browser cannot choose, or the device is gone, the system's own is used. */
  async setSpeaker(sinkId) {
    this.#sinkId = sinkId;
    if (this.#context && this.canChooseSpeaker) {
      await this.#context.setSinkId(sinkId).catch(() => this.#context.setSinkId(""));
    }
  }

  setRecording(isOn) {
    if (isOn && !this.recording) {
      this.recording = new Recording();
    }
    this.playback?.record(isOn);
  }

  /** Play one reply again, beside whatever else is going on. Resolves when it is over. */
  replay(pcmPieces, sampleRateHz) {
    const length = pcmPieces.reduce((sum, piece) => sum + piece.length, 0);
    const buffer = this.#context.createBuffer(1, Math.max(1, length), sampleRateHz);
    const channel = buffer.getChannelData(0);
    let offset = 0;
    for (const piece of pcmPieces) {
      for (let index = 0; index < piece.length; index += 1) {
        channel[offset + index] = piece[index] / 32768;
      }
      offset += piece.length;
    }
    const source = new AudioBufferSourceNode(this.#context, { buffer });
    source.connect(this.#context.destination);
    source.start();
    return new Promise((resolve) => {
      source.addEventListener("ended", resolve, { once: true });
    });
  }

  #stateChanged() {
    if (this.#context.state === "running") {
      this.dispatchEvent(new Event("unblocked"));
    } else if (this.#context.state === "interrupted") {
      this.resume(); // a phone call took the sound away
    }
  }
}
