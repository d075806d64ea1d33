// What was said and heard, kept in this browser until the person saves it. Left channel: microphone, right: assistant.

import { int16FromFloat, wavFile } from "./pcm.js";
import { Resampler } from "./resampler.js";

export const RECORDING_RATE_HZ = 16000;
const LONGEST_S = 30 * 60;

export class Recording {
  #microphone = [];
  #speaker = [];
  #startedAt = null;

  get isEmpty() {
    return this.#startedAt === null;
  }

  /** A frame of 16 kHz int16 that ended at `at` seconds of the audio clock. */
  addMicrophone(pcm, at) {
    this.#add(this.#microphone, Int16Array.from(pcm), at - pcm.length / RECORDING_RATE_HZ);
  }

  /** A block of float samples at `rateHz` that was rendered at `at` seconds of the audio clock. */
  addSpeaker(samples, rateHz, at) {
    this.#add(this.#speaker, samples, at, rateHz);
  }

  /** Both channels as a WAV file. */
  toWav() {
    return wavFile([this.#microphoneChannel(), this.#speakerChannel()], RECORDING_RATE_HZ);
  }

  #add(track, samples, at, rateHz = RECORDING_RATE_HZ) {
    this.#startedAt ??= at;
    if (at - this.#startedAt < LONGEST_S) {
      track.push({ samples, rateHz, at: Math.max(0, at - this.#startedAt) });
    }
  }

  #microphoneChannel() {
    const blocks = this.#microphone.map(({ samples, at }) => ({ pcm: samples, start: Math.round(at * RECORDING_RATE_HZ) }));
    return layOut(blocks);
  }

  /** Blocks that follow one another without a gap are one sound, and are resampled as one. */
  #speakerChannel() {
    const blocks = [];
    let resampler = null;
    let expectedAt = -1;
    for (const { samples, rateHz, at } of this.#speaker) {
      if (Math.abs(at - expectedAt) > 0.002) {
        resampler = new Resampler(rateHz, RECORDING_RATE_HZ);
        blocks.push({ start: Math.round(at * RECORDING_RATE_HZ), parts: [] });
      }
      blocks.at(-1).parts.push(int16FromFloat(resampler.process(samples)));
      expectedAt = at + samples.length / rateHz;
    }
    return layOut(blocks.map(({ start, parts }) => ({ start, pcm: joined(parts) })));
  }
}

function joined(parts) {
  const pcm = new Int16Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    pcm.set(part, offset);
    offset += part.length;
  }
  return pcm;
}

function layOut(blocks) {
  const channel = new Int16Array(blocks.reduce((end, { start, pcm }) => Math.max(end, start + pcm.length), 0));
  for (const { start, pcm } of blocks) {
    channel.set(pcm, start);
  }
  return channel;
}
