// The loudspeaker: pieces of speech or a media track in, and exact word of what was heard of which item.

import { loudness } from "./pcm.js";

const DUCKED = 0.12; // of the volume while it is not known whether the caller interrupts
const DUCKED_TRACK = 0.35; // the same where the server sends the sound, which it makes as much quieter
const DUCKING_S = 0.02;

/** Stands in where the page may not make sound (no https): everything is silent, and nothing was ever heard. */
export class SilentPlayback extends EventTarget {
  speaking = null;
  level = 0;
  deviceLatencyMs = 0;
  isFollowing = false;
  framesDelayMs = 0;

  async open() {}

  push() {}

  follow() {}

  followFrames() {}

  pushFrame() {}

  expect() {}

  goOn() {}

  duck() {}

  hold() {}

  goBack() {}

  end() {}

  async flush() {
    return [];
  }

  record() {}
}

/**
 * Events: `started` {itemId}, `ended` {itemId}, `underrun` {itemId}, `position` {itemId, playedMs},
 * `heard` {itemId, pcm, sampleRateHz} of a followed track, `rendered` {samples, at}.
 */
export class Playback extends EventTarget {
  #context;
  #workletUrl;
  #node = null;
  #volume = null;
  #track = null; // of a media track: {source, element}
  #analyser = null;
  #window = null;
  #hasFrames = false;
  #flushes = new Map();
  #nextTicket = 1;
  #speaking = null;
  #heardBefore = new Map(); // by item: ms of it that were heard before it went on

  constructor(context, workletUrl) {
    super();
    this.#context = context;
    this.#workletUrl = workletUrl;
  }

  /** How long frames wait before they are played, in ms. */
  framesDelayMs = 0;

  /** Id of the item being heard, or null. */
  get speaking() {
    return this.#speaking;
  }

  /** Loudness of the last moment, in [0, 1]. */
  get level() {
    if (!this.#analyser || this.#speaking === null) {
      return 0;
    }
    this.#analyser.getFloatTimeDomainData(this.#window);
    return loudness(this.#window);
  }

  /** Time between a sample's rendering and the ear, in ms, as far as the browser knows. */
  get deviceLatencyMs() {
    return Math.round((this.#context.outputLatency || this.#context.baseLatency || 0) * 1000);
  }

  async open() {
    await this.#context.audioWorklet.addModule(this.#workletUrl);
    this.#node = new AudioWorkletNode(this.#context, "playback", {
      numberOfInputs: 1,
      outputChannelCount: [1],
      channelCount: 1,
      channelCountMode: "explicit",
    });
    this.#node.port.onmessage = ({ data }) => this.#receive(data);
    this.#analyser = this.#context.createAnalyser();
    this.#analyser.fftSize = 1024;
    this.#window = new Float32Array(this.#analyser.fftSize);
    this.#volume = this.#context.createGain();
    this.#node.connect(this.#volume).connect(this.#analyser).connect(this.#context.destination);
  }

  push(itemId, pcm, sampleRateHz) {
    this.#node.port.postMessage({ kind: "push", itemId, pcm, sampleRateHz }, [pcm.buffer]);
  }

  /** Play a media stream that carries one reply after the other, or no longer (null). */
  follow(stream) {
    this.#track?.source.disconnect();
    this.#track = null;
    if (stream) {
      const element = new Audio(); // Chromium decodes a remote track only while a media element plays it
      element.muted = true;
      element.srcObject = stream;
      element.play().catch(() => {}); // muted, it may play; and where it may not, the context could not either
      const source = this.#context.createMediaStreamSource(stream);
      source.connect(this.#node);
      this.#track = { source, element };
    }
  }

  /** Play frames that come by themselves, of one reply after the other, or no longer. */
  followFrames(isOn) {
    this.#hasFrames = isOn;
    this.#node?.port.postMessage({ kind: "frames", isOn });
  }

  /** The next 20 ms of the replies: float samples, in order. */
  pushFrame(samples, sampleRateHz) {
    this.#node.port.postMessage({ kind: "frame", samples, sampleRateHz }, [samples.buffer]);
  }

  get isFollowing() {
    return this.#track !== null || this.#hasFrames;
  }

  /** The next voice on the followed track is this item's. */
  expect(itemId) {
    this.#node.port.postMessage({ kind: "expect", itemId });
  }

  /** An item that was cut goes on from where it was heard. */
  goOn(itemId, heardMs) {
    this.#heardBefore.set(itemId, heardMs);
    this.#node.port.postMessage({ kind: "go-on", itemId });
    if (this.isFollowing) {
      this.expect(itemId);
    }
  }

  /** Quietly, or as loud as before; either fades, against the click. */
  duck(isOn) {
    const volume = this.isFollowing ? DUCKED_TRACK : DUCKED;
    this.#volume.gain.setTargetAtTime(isOn ? volume : 1, this.#context.currentTime, DUCKING_S);
  }

  /** Wait with what was pushed, or go on. */
  hold(isOn) {
    this.#node.port.postMessage({ kind: "hold", isOn });
  }

  /** The item being heard is heard again from here on. */
  goBack(itemId, playedMs) {
    const sinceMs = playedMs - (this.#heardBefore.get(itemId) ?? 0);
    this.#node.port.postMessage({ kind: "go-back", itemId, playedMs: sinceMs });
  }

  end(itemId) {
    this.#node.port.postMessage({ kind: "end", itemId });
  }

  /** Silence within 20 ms. Resolves to what was cut: [{itemId, heardMs}], the item being heard first. */
  flush() {
    const ticket = this.#nextTicket;
    this.#nextTicket += 1;
    const isAudible = this.#speaking !== null;
    this.#speaking = null;
    this.#node.port.postMessage({ kind: "flush", ticket });
    return new Promise((resolve) => {
      this.#flushes.set(ticket, (cut) => {
        const onTheWayMs = isAudible ? this.deviceLatencyMs : 0;
        const heardMs = ({ itemId, playedMs }) => this.#played(itemId, Math.max(0, playedMs - onTheWayMs));
        resolve(cut.map((item) => ({ itemId: item.itemId, heardMs: heardMs(item) })));
        this.#heardBefore.clear();
      });
    });
  }

  /** Report every rendered block, so that the page can keep a recording. */
  record(isOn) {
    this.#node.port.postMessage({ kind: "record", isOn });
  }

  #played(itemId, sinceMs) {
    return (this.#heardBefore.get(itemId) ?? 0) + sinceMs;
  }

  #receive(message) {
    if (message.kind === "flushed") {
      if (message.cut.some(({ itemId }) => itemId === this.#speaking)) {
        this.#speaking = null; // its `started` was under way while we asked for silence
      }
      this.#flushes.get(message.ticket)?.(message.cut);
      this.#flushes.delete(message.ticket);
      return;
    }
    if (message.kind === "delay") {
      this.framesDelayMs = message.delayMs;
      return;
    }
    if (message.kind === "started") {
      this.#speaking = message.itemId;
    } else if (message.kind === "ended" && message.itemId === this.#speaking) {
      this.#speaking = null;
    }
    if (message.kind === "position") {
      message.playedMs = this.#played(message.itemId, message.playedMs);
    } else if (message.kind === "ended") {
      this.#heardBefore.delete(message.itemId);
    }
    this.dispatchEvent(new CustomEvent(message.kind, { detail: message }));
  }
}
