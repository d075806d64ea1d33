// The microphone: permission, device, and 16 kHz frames. Levels come from an analyser, frames from the worklet.

import { loudness } from "./pcm.js";

export const SAMPLE_RATE_HZ = 16000;
export const FRAME_SAMPLES = 512; // 32 ms: what the server's voice detector looks at, so nothing waits for a remainder

const PROBLEM_BY_ERROR = {
  NotAllowedError: "microphone_denied",
  SecurityError: "microphone_denied",
  NotFoundError: "microphone_missing",
  OverconstrainedError: "microphone_missing",
  NotReadableError: "microphone_busy",
  AbortError: "microphone_busy",
};

/** The microphone could not be opened; `code` names the notice that the page shows. */
export class MicrophoneError extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

/**
 * Events: `frame` (detail {pcm: Int16Array, at: s on the audio clock}), `track` when the microphone opened, changed or
 * closed, `lost` when the device is unplugged.
 */
export class Capture extends EventTarget {
  #context;
  #workletUrl;
  #stream = null;
  #nodes = [];
  #worklet = null;
  #analyser = null;
  #window = null;
  #isMuted = false;
  #isHeldBack = false;

  constructor(context, workletUrl) {
    super();
    this.#context = context;
    this.#workletUrl = workletUrl;
  }

  get isOpen() {
    return this.#stream !== null;
  }

  /** The microphone's track, for whoever sends it as it is, or null. */
  get track() {
    return this.#stream?.getAudioTracks()[0] ?? null;
  }

  get isMuted() {
    return this.#isMuted;
  }

  set isMuted(isMuted) {
    this.#isMuted = isMuted;
    this.#enable();
  }

  /** Whether the track is silent until the person holds the key. */
  set isHeldBack(isHeldBack) {
    this.#isHeldBack = isHeldBack;
    this.#enable();
  }

  /** Loudness of the last moment, in [0, 1]. */
  get level() {
    if (!this.#analyser || this.#isMuted) {
      return 0;
    }
    this.#analyser.getFloatTimeDomainData(this.#window);
    return loudness(this.#window);
  }

  /** Ask for the microphone and start; throws MicrophoneError. Replaces the device when one is open. */
  async open(deviceId = "") {
    const stream = await this.#ask(deviceId);
    this.close();
    this.#stream = stream;
    this.#enable();
    this.track.addEventListener("ended", () => this.#lost(stream));
    this.dispatchEvent(new Event("track"));
    await this.#context.audioWorklet.addModule(this.#workletUrl);
    if (this.#stream !== stream) {
      return; // closed meanwhile
    }
    this.#connect(stream);
  }

  close() {
    this.#worklet?.port.postMessage("close");
    for (const node of this.#nodes) {
      node.disconnect();
    }
    for (const track of this.#stream?.getTracks() ?? []) {
      track.stop();
    }
    this.#nodes = [];
    this.#worklet = null;
    this.#analyser = null;
    this.#stream = null;
    this.dispatchEvent(new Event("track"));
  }

  #enable() {
    if (this.track) {
      this.track.enabled = !this.#isMuted && !this.#isHeldBack; // else the browser delivers silence, and says so
    }
  }

  async #ask(deviceId) {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new MicrophoneError(window.isSecureContext ? "microphone_missing" : "insecure");
    }
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    try {
      return await navigator.mediaDevices.getUserMedia({
        audio: deviceId ? { ...audio, deviceId: { exact: deviceId } } : audio,
      });
    } catch (error) {
      if (deviceId && error.name === "OverconstrainedError") {
        return this.#ask(""); // the chosen microphone is gone: take the system's
      }
      throw new MicrophoneError(PROBLEM_BY_ERROR[error.name] ?? "microphone_busy");
    }
  }

  #connect(stream) {
    const source = this.#context.createMediaStreamSource(stream);
    this.#analyser = this.#context.createAnalyser();
    this.#analyser.fftSize = 1024;
    this.#window = new Float32Array(this.#analyser.fftSize);
    this.#worklet = new AudioWorkletNode(this.#context, "capture", {
      numberOfInputs: 1,
      numberOfOutputs: 1,
      channelCount: 1,
      channelCountMode: "explicit",
      processorOptions: { sampleRateHz: SAMPLE_RATE_HZ, frameSamples: FRAME_SAMPLES },
    });
    this.#worklet.port.onmessage = ({ data }) => this.dispatchEvent(new CustomEvent("frame", { detail: data }));
    source.connect(this.#analyser);
    // Some browsers run a node only while it leads to the speakers; this one's output is silence.
    source.connect(this.#worklet).connect(this.#context.destination);
    this.#nodes = [source, this.#analyser, this.#worklet];
  }

  #lost(stream) {
    if (this.#stream === stream) {
      this.close();
      this.dispatchEvent(new CustomEvent("lost"));
    }
  }
}
