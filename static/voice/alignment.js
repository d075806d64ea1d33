// Which words have been heard: positions in audio to positions in text. Pure, so that bare JavaScript tests it.

export const USUAL_MS_PER_CHAR = 66; // 165 words a minute

/**
 * How many characters of `text` have been spoken after `playedMs`, moved to the end of a word.
 *
 * Text runs ahead of sound, so while sound is still coming its speed is taken as `msPerChar` (what the voice needed
 * before); once it is complete, `audioMs` says exactly how long the text lasts.
 */
export function spokenChars({ text, audioMs, isComplete, msPerChar = USUAL_MS_PER_CHAR }, playedMs) {
  if (playedMs <= 0) {
    return 0;
  }
  const lengthMs = isComplete ? audioMs : Math.max(audioMs, text.length * msPerChar);
  return playedMs >= lengthMs ? text.length : endOfWord(text, Math.floor((text.length * playedMs) / lengthMs));
}

/** `position`, or the end of the word it lies in. */
function endOfWord(text, position) {
  let end = position;
  while (end > 0 && end < text.length && !/\s/.test(text[end]) && !/\s/.test(text[end - 1])) {
    end += 1;
  }
  return end;
}
