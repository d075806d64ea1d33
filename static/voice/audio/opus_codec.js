// Opus by WebCodecs: microphone samples to packets, packets to samples.

const FRAME_US = 20000;
const BITRATE = 32000;
const DECODED_HZ = 48000; // whatever was encoded

/** Whether this browser has both. */
export function hasOpus() {
  return "AudioEncoder" in window && "AudioDecoder" in window;
}

/** Mono PCM at one rate in, a packet for every 20 ms out. */
export class OpusEncoder {
  #encoder;
  #rateHz;
  #samples = 0;

  /** `onPacket(number, bytes)` is called with frames numbered from 0. */
  constructor(rateHz, onPacket) {
    this.#rateHz = rateHz;
    this.#encoder = new AudioEncoder({
      output: (chunk) => {
        const bytes = new Uint8Array(chunk.byteLength);
        chunk.copyTo(bytes);
        onPacket(Math.round(chunk.timestamp / FRAME_US), bytes);
      },
      error: () => {}, // the other side hears silence, and says so
    });
    const opus = /** @type {OpusEncoderConfig} */ ({ application: "voip", frameDuration: FRAME_US });
    this.#encoder.configure({ codec: "opus", sampleRate: rateHz, numberOfChannels: 1, bitrate: BITRATE, opus });
  }

  encode(pcm) {
    if (this.#encoder.state !== "configured") {
      return;
    }
    const data = new AudioData({
      format: "s16",
      sampleRate: this.#rateHz,
      numberOfFrames: pcm.length,
      numberOfChannels: 1,
      timestamp: Math.round((this.#samples * 1e6) / this.#rateHz),
      data: pcm,
    });
    this.#samples += pcm.length;
    this.#encoder.encode(data);
    data.close();
  }

  close() {
    if (this.#encoder.state !== "closed") {
      this.#encoder.close();
    }
  }
}

/** Packets in their order in, float samples out. */
export class OpusDecoder {
  #decoder;
  #frames = 0;

  /** `onSamples(samples, rateHz)` is called with a Float32Array. */
  constructor(onSamples) {
    this.#decoder = new AudioDecoder({
      output: (data) => {
        const samples = new Float32Array(data.numberOfFrames);
        data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
        onSamples(samples, data.sampleRate);
        data.close();
      },
      error: () => {},
    });
    this.#decoder.configure({ codec: "opus", sampleRate: DECODED_HZ, numberOfChannels: 1 });
  }

  decode(bytes) {
    if (this.#decoder.state !== "configured") {
      return;
    }
    this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: this.#frames * FRAME_US, data: bytes }));
    this.#frames += 1;
  }

  close() {
    if (this.#decoder.state !== "closed") {
      this.#decoder.close();
    }
  }
}
