// Arithmetic of PCM samples. Imports no Web Audio, so that bare JavaScript tests it.

/** Float samples in [-1, 1] to int16; what is louder is clipped. */
export function int16FromFloat(samples) {
  const pcm = new Int16Array(samples.length);
  for (let index = 0; index < samples.length; index += 1) {
    const sample = Math.max(-1, Math.min(1, samples[index]));
    pcm[index] = Math.round(sample < 0 ? sample * 32768 : sample * 32767);
  }
  return pcm;
}

/** Int16 samples to floats in [-1, 1). */
export function floatFromInt16(pcm) {
  const samples = new Float32Array(pcm.length);
  for (let index = 0; index < pcm.length; index += 1) {
    samples[index] = pcm[index] / 32768;
  }
  return samples;
}

/** Base64 of int16 little-endian samples, as the wire carries audio. */
export function base64FromInt16(pcm) {
  const bytes = new Uint8Array(pcm.length * 2);
  const view = new DataView(bytes.buffer);
  for (let index = 0; index < pcm.length; index += 1) {
    view.setInt16(index * 2, pcm[index], true);
  }
  let text = "";
  for (let start = 0; start < bytes.length; start += 8192) {
    text += String.fromCharCode(...bytes.subarray(start, start + 8192));
  }
  return btoa(text);
}

/** The int16 samples in a base64 text; an odd last byte is dropped. */
export function int16FromBase64(base64) {
  const text = atob(base64);
  const pcm = new Int16Array(text.length >> 1);
  for (let index = 0; index < pcm.length; index += 1) {
    pcm[index] = text.charCodeAt(index * 2) | (text.charCodeAt(index * 2 + 1) << 8);
  }
  return pcm;
}

/** Loudness (root mean square) of float samples, in [0, 1]. */
export function loudness(samples) {
  if (samples.length === 0) {
    return 0;
  }
  let sum = 0;
  for (const sample of samples) {
    sum += sample * sample;
  }
  return Math.sqrt(sum / samples.length);
}

/** How full a meter stands for a loudness: -54 dB is empty, -12 dB is full. */
export function meterLevel(rms) {
  const decibel = 20 * Math.log10(Math.max(rms, 1e-6));
  return Math.max(0, Math.min(1, (decibel + 54) / 42));
}

/** A WAV file of int16 channels; shorter channels are filled with silence. */
export function wavFile(channels, sampleRateHz) {
  const length = Math.max(...channels.map((channel) => channel.length));
  const blockBytes = channels.length * 2;
  const view = new DataView(new ArrayBuffer(44 + length * blockBytes));
  const ascii = (offset, text) => {
    for (let index = 0; index < text.length; index += 1) {
      view.setUint8(offset + index, text.charCodeAt(index));
    }
  };
  ascii(0, "RIFF");
  view.setUint32(4, 36 + length * blockBytes, true);
  ascii(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels.length, true);
  view.setUint32(24, sampleRateHz, true);
  view.setUint32(28, sampleRateHz * blockBytes, true);
  view.setUint16(32, blockBytes, true);
  view.setUint16(34, 16, true);
  ascii(36, "data");
  view.setUint32(40, length * blockBytes, true);
  for (let index = 0; index < length; index += 1) {
    for (let channel = 0; channel < channels.length; channel += 1) {
      view.setInt16(44 + index * blockBytes + channel * 2, channels[channel][index] ?? 0, true);
    }
  }
  return new Uint8Array(view.buffer);
}
