// Runs in the audio thread: pieces of speech or a media track in, sound out, and word of what was heard.

import { JitterBuffer } from "./jitter_buffer.js";
import { PlayoutQueue } from "./playout_queue.js";
import { Resampler } from "./resampler.js";
import { RingBuffer } from "./ring_buffer.js";
import { TrackFollower } from "./track_follower.js";
import { floatFromInt16, int16FromFloat } from "./pcm.js";

const POSITION_EVERY_S = 0.05;

class PlaybackProcessor extends AudioWorkletProcessor {
  #queue = new PlayoutQueue(sampleRate);
  #follower = new TrackFollower(sampleRate);
  #heard = new RingBuffer(8192);
  #heardItem = null;
  #resampler = null;
  #resampledItem = null;
  #sourceRateHz = 0;
  #nextPositionAt = 0;
  #isRecording = false;
  #frames = null; // a JitterBuffer, while frames are followed
  #framesResampler = null;
  #block = new Float32Array(128);
  #delayMs = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#receive(data);
  }

  process([track], [output]) {
    const happened = this.#queue.pull(output[0]);
    if (track.length > 0) {
      happened.push(...this.#follow(track[0], output[0]));
    } else if (this.#frames) {
      this.#frames.pull(this.#block);
      happened.push(...this.#follow(this.#block, output[0]));
    }
    for (const event of happened) {
      this.port.postMessage({ ...event, at: currentTime });
    }
    for (const channel of output.slice(1)) {
      channel.set(output[0]);
    }
    if (this.#isRecording && output[0].some((sample) => sample !== 0)) {
      const samples = output[0].slice();
      this.port.postMessage({ kind: "rendered", samples, at: currentTime }, [samples.buffer]);
    }
    if (currentTime >= this.#nextPositionAt) {
      this.#nextPositionAt = currentTime + POSITION_EVERY_S;
      this.#tellHeard();
      this.#tellDelay();
      const position = this.#queue.position() ?? this.#follower.position();
      if (position) {
        this.port.postMessage({ kind: "position", ...position });
      }
    }
    return true;
  }

  /** The track's voice to the loudspeaker; returns what happened. */
  #follow(samples, output) {
    const happened = this.#follower.take(samples, output);
    const itemId = this.#follower.position()?.itemId ?? null;
    if (itemId !== this.#heardItem) {
      this.#tellHeard();
      this.#heardItem = itemId;
    }
    if (itemId !== null) {
      this.#heard.push(samples);
    }
    return happened;
  }

  /** What was heard of an item goes to the page, which keeps it to be played again. */
  #tellHeard() {
    if (this.#heard.length > 0) {
      const samples = new Float32Array(this.#heard.length);
      this.#heard.pull(samples);
      const pcm = int16FromFloat(samples);
      this.port.postMessage({ kind: "heard", itemId: this.#heardItem, pcm, sampleRateHz: sampleRate }, [pcm.buffer]);
    }
  }

  #tellDelay() {
    if (this.#frames && this.#frames.delayMs !== this.#delayMs) {
      this.#delayMs = this.#frames.delayMs;
      this.port.postMessage({ kind: "delay", delayMs: this.#delayMs });
    }
  }

  #pushFrame({ samples, sampleRateHz }) {
    this.#framesResampler ??= new Resampler(sampleRateHz, sampleRate);
    this.#frames?.push(this.#framesResampler.process(samples));
  }

  #receive(message) {
    if (message.kind === "push") {
      this.#push(message);
    } else if (message.kind === "frame") {
      this.#pushFrame(message);
    } else if (message.kind === "frames") {
      this.#frames = message.isOn ? new JitterBuffer(sampleRate) : null;
      this.#framesResampler = null;
    } else if (message.kind === "end") {
      this.#finish(message.itemId);
      this.#queue.end(message.itemId);
      this.#follower.end(message.itemId);
    } else if (message.kind === "expect") {
      this.#follower.expect(message.itemId);
    } else if (message.kind === "go-on") {
      this.#queue.goOn(message.itemId);
      this.#follower.goOn(message.itemId);
    } else if (message.kind === "hold") {
      this.#queue.hold(message.isOn);
    } else if (message.kind === "go-back") {
      this.#queue.goBack(message.itemId, message.playedMs);
      this.#follower.goBack(message.itemId, message.playedMs);
    } else if (message.kind === "flush") {
      this.#resampledItem = null;
      this.#frames?.clear();
      this.port.postMessage({ kind: "flushed", ticket: message.ticket, cut: [...this.#queue.flush(), ...this.#follower.flush()] });
    } else if (message.kind === "record") {
      this.#isRecording = message.isOn;
    }
  }

  #push({ itemId, pcm, sampleRateHz }) {
    if (sampleRateHz !== this.#sourceRateHz) {
      this.#sourceRateHz = sampleRateHz;
      this.#resampler = new Resampler(sampleRateHz, sampleRate);
    }
    if (itemId !== this.#resampledItem) {
      this.#finish(this.#resampledItem);
      this.#resampler.reset();
      this.#resampledItem = itemId;
    }
    this.#queue.push(itemId, this.#resampler.process(floatFromInt16(pcm)));
  }

  /** The resampler still holds the last millisecond of an item. */
  #finish(itemId) {
    if (itemId !== null && itemId === this.#resampledItem) {
      this.#queue.push(itemId, this.#resampler.finish());
      this.#resampledItem = null;
    }
  }
}

registerProcessor("playback", PlaybackProcessor);
