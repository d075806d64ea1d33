// Which words have been heard: positions in audio to positions in text. Pure, so that bare JavaScript tests it.

export const USUAL_MS_PER_CHAR = 66; // 165 words a minute

const LONGEST_WORD = 40; // characters: how far a boundary is looked for either way
const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const SENTENCES = new Intl.Segmenter(undefined, { granularity: "sentence" });

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

/** How many characters of `text` are whole sentences that end at or before `position`. */
export function wholeSentences(text, position) {
  let end = 0;
  for (const { index, segment } of SENTENCES.segment(text)) {
    if (index + segment.trimEnd().length > position) {
      break;
    }
    end = index + segment.length;
  }
  return Math.min(end, position);
}

/** `position`, or the end of the word it lies in, in scripts with spaces between words and without. */
function endOfWord(text, position) {
  const from = Math.max(0, position - LONGEST_WORD);
  let end = position;
  for (const { index, segment, isWordLike } of WORDS.segment(text.slice(from, position + LONGEST_WORD))) {
    const begin = from + index;
    if (begin >= end && (isWordLike || /^\s/u.test(segment))) {
      break;
    }
    end = Math.max(end, begin + segment.length); // and the full stop that belongs to it
  }
  return end;
}
