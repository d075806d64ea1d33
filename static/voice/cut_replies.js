// Replies whose connection was lost before they were heard to their end, until it is known whether they go on.

const SILENCE_MS = 500; // a loudspeaker that the browser has stopped does not answer

/** `audio`: a ResponseAudio. */
export class CutReplies {
  #audio;
  #conversation;
  #open = []; // items that were not complete
  #isHeld = false;
  #cut = []; // what the loudspeaker had not played to its end: [{itemId, heardMs}]

  constructor(audio, conversation) {
    this.#audio = audio;
    this.#conversation = conversation;
  }

  /** It is not known yet whether they go on. */
  get isHeld() {
    return this.#isHeld;
  }

  /** Fall silent, and remember where. Resolves to the replies that were not heard to their end, [{itemId, heardMs}]. */
  async hold({ isTrackPlayed }) {
    this.#isHeld = true;
    this.#open = this.#conversation.openReplies;
    const isAllHere = this.#open.length === 0 && !isTrackPlayed; // of a complete reply, what has arrived is heard
    this.#cut = isAllHere ? [] : await Promise.race([this.#audio.pause(), silence()]);
    return this.#cut;
  }

  /** They go on: the server says again what was not heard. */
  goOn() {
    this.#isHeld = false;
    for (const { itemId, heardMs } of this.#cut) {
      this.#audio.goOn(itemId, heardMs);
    }
    this.#cut = [];
  }

  /** They do not go on. Returns whether something that the caller was saying is lost as well. */
  giveUp() {
    this.#isHeld = false;
    for (const { itemId, heardMs } of this.#cut) {
      this.#conversation.cutShort(itemId, heardMs);
    }
    this.#cut = [];
    return this.#conversation.loseOpen(this.#open);
  }
}

/** Nothing was cut, as far as is known in time. */
function silence() {
  return new Promise((resolve) => {
    setTimeout(resolve, SILENCE_MS, []);
  });
}
