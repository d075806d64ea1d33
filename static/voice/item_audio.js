// The sound of an item as it is kept to be played again. Imports no Web Audio, so that bare JavaScript tests it.

import { floatFromInt16, int16FromFloat } from "./audio/pcm.js";
import { Resampler } from "./audio/resampler.js";

const KEPT_SAMPLES = 24000 * 60 * 8;

/** Add the next samples. An item that goes on over another transport may come at another rate: it keeps its first. */
export function addPiece(audio, pcm, rateHz) {
  audio.rateHz = audio.samples === 0 ? rateHz : audio.rateHz;
  let piece = pcm;
  if (rateHz !== audio.rateHz) {
    audio.resampler ??= new Resampler(rateHz, audio.rateHz);
    piece = int16FromFloat(audio.resampler.process(floatFromInt16(pcm)));
  }
  audio.pieces.push(piece);
  audio.samples += piece.length;
}

/** Keep what was heard: the rest comes again. */
export function cutPieces(audio, heardMs) {
  let left = Math.min(audio.samples, Math.round((heardMs * audio.rateHz) / 1000));
  audio.samples = left;
  audio.resampler = null;
  audio.pieces = audio.pieces.flatMap((piece) => {
    const kept = piece.subarray(0, Math.min(piece.length, left));
    left -= kept.length;
    return kept.length > 0 ? [kept] : [];
  });
}

/** The oldest of these items lose their sound when all have more than is kept. */
export function forgetOldest(items) {
  let kept = 0;
  for (const item of items.toReversed()) {
    kept += item.audio.samples;
    if (kept > KEPT_SAMPLES && item.state !== "live") {
      item.audio.pieces = [];
    }
  }
}
