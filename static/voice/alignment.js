// Which words have been heard: positions in audio to positions in text. Pure, so that bare JavaScript tests it.

export const USUAL_MS_PER_CHAR = 66; // 165 words a minute

const LONGEST_WORD = 40; // characters: how far a boundary is looked for either way
const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const SENTENCES = new Intl.Segmenter(undefined, { granularity: "sentence" });

/**
 * How many characters of `text` have been spoken after `playedMs`, moved to the end of a word.
 *
 * `words` say where the voice is, as far as they are known: {end, startMs, endMs}, a word each or a sentence. Text runs
 * ahead of sound, so behind them, while sound is still coming, its speed is taken as `msPerChar` (what the voice needed
 * before); once it is complete, `audioMs` says exactly how long the rest of the text lasts.
 */
export function spokenChars({ text, audioMs, isComplete, words = [], msPerChar = USUAL_MS_PER_CHAR }, playedMs) {
  const next = words.findIndex(({ endMs }) => playedMs < endMs);
  const last = words.at(next < 0 ? -1 : next - 1);
  const [said, sinceMs] = next === 0 || !last ? [0, 0] : [last.end, last.endMs];
  if (next >= 0) {
    const { end, startMs, endMs } = words[next];
    return spread(text, said, end, playedMs - startMs, endMs - startMs);
  }
  const left = text.length - said;
  const leftMs = isComplete ? audioMs - sinceMs : Math.max(audioMs - sinceMs, left * msPerChar);
  return spread(text, said, text.length, playedMs - sinceMs, leftMs);
}

/** The place between two in `text` after `playedMs` of the time between them. */
function spread(text, from, to, playedMs, lengthMs) {
  if (playedMs <= 0) {
    return from;
  }
  const begin = from + Math.max(0, text.slice(from, to).search(/\S/u));
  const position = begin + Math.max(1, Math.floor(((to - begin) * playedMs) / lengthMs));
  return playedMs >= lengthMs ? to : Math.min(to, endOfWord(text, position));
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
