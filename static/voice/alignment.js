// Which words have been heard: positions in audio to positions in text. Pure, so that bare JavaScript tests it.

const USUAL_MS_PER_CHAR = 66; // 165 words a minute

/**
 * How many characters of `text` have been spoken after `playedMs`, moved to the end of a word.
 *
 * `marks` are points known to correspond, [{ms, chars}]: when a piece of text arrived, so much audio had. Between two of
 * them speech is taken as even; after the last one, as even until `audioMs` when the audio is complete, else as usual speed.
 */
export function spokenChars({ text, marks, audioMs, isComplete }, playedMs) {
  if (playedMs <= 0) {
    return 0;
  }
  if (isComplete && playedMs >= audioMs) {
    return text.length;
  }
  const points = marks.length > 0 ? [...marks] : [{ ms: 0, chars: 0 }];
  if (isComplete) {
    points.push({ ms: audioMs, chars: text.length });
  }
  const after = points.findIndex(({ ms }) => ms > playedMs);
  const from = after === -1 ? points.at(-1) : points[Math.max(0, after - 1)];
  const to = after === -1 ? null : points[after];
  const msPerChar = to && to.chars > from.chars ? (to.ms - from.ms) / (to.chars - from.chars) : USUAL_MS_PER_CHAR;
  const limit = to ? to.chars : text.length;
  const chars = Math.min(limit, from.chars + Math.floor((playedMs - from.ms) / Math.max(1, msPerChar)));
  return endOfWord(text, chars);
}

/** `position`, or the end of the word it lies in. */
function endOfWord(text, position) {
  let end = Math.max(0, Math.min(text.length, position));
  while (end > 0 && end < text.length && !/\s/.test(text[end]) && !/\s/.test(text[end - 1])) {
    end += 1;
  }
  return end;
}
