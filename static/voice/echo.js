// Does the microphone hear the loudspeaker? Pure, so that bare JavaScript tests it.

const FEWEST_WORDS = 3;
const SHARE_OF_WORDS = 0.75;

/** Whether the caller's last words are the loudspeaker's: the server found the reply in the sound, and so do the words. */
export class Echo {
  #reply = null; // during which the caller began to speak
  #isFound = false;

  speechStarted(reply) {
    this.#reply = reply;
  }

  speechStopped({ echo }) {
    this.#isFound = echo ?? false;
  }

  isIn(heard) {
    return this.#isFound && this.#reply !== null && isEcho(heard, this.#reply.text + this.#reply.unheard);
  }
}

/** Whether what the caller seems to have said is mostly what the assistant was just saying, word order included. */
export function isEcho(transcript, spoken) {
  const heard = words(transcript);
  if (heard.length < FEWEST_WORDS) {
    return false;
  }
  return longestCommonSubsequence(heard, words(spoken)) / heard.length >= SHARE_OF_WORDS;
}

function words(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}

function longestCommonSubsequence(a, b) {
  let row = new Array(b.length + 1).fill(0);
  for (const word of a) {
    const next = [0];
    for (let index = 0; index < b.length; index += 1) {
      next.push(word === b[index] ? row[index] + 1 : Math.max(row[index + 1], next[index]));
    }
    row = next;
  }
  return row.at(-1);
}
