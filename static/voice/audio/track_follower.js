// Whose voice is on a media track that carries every reply one after the other, and how much of it was heard.
// The events say whose turn it is, the samples say when it sounds. Imports no Web Audio, so that bare JavaScript tests it.

const AUDIBLE = 0.002; // -54 dB: above the comfort noise of a silent track
const ENDING_SILENCE_MS = 400; // after the last word; what was on its way when the server said "done" is shorter
const MUTE_ITEM_MS = 1500; // an item of which nothing has sounded by then never will
const STOPPED_SILENCE_MS = 60; // the server has heard that it was interrupted
const LONGEST_PAUSE_MS = 1000; // a longer silence in an item is the network's or the model's, and not part of the item
const FADE_MS = 10;
const REMEMBERED_ENDS = 64;

export class TrackFollower {
  #rateHz;
  #items = []; // {itemId, played, hasStarted, isComplete, waited, isAwaited}; the first is the one being heard
  #ended = new Set();
  #silent = Infinity; // samples since the last audible one
  #unclaimed = 0; // samples of a voice whose item has not been announced yet
  #isGated = false;
  #gain = 1;

  constructor(rateHz) {
    this.#rateHz = rateHz;
  }

  /** The next voice on the track will be this item's. */
  expect(itemId) {
    if (this.#ended.has(itemId) || this.#items.some((item) => item.itemId === itemId)) {
      return;
    }
    this.#isGated = false;
    this.#items.push({ itemId, played: this.#unclaimed, hasStarted: false, isComplete: false, waited: 0, isAwaited: false });
    this.#unclaimed = 0;
  }

  /** The server has sent all of this item. */
  end(itemId) {
    const item = this.#items.find((candidate) => candidate.itemId === itemId);
    if (item) {
      item.isComplete = true;
    }
  }

  /**
   * Silence at once, until the server has stopped as well or another item begins.
   * Returns what was cut, [{itemId, playedMs}], the item being heard first.
   */
  flush() {
    const unsounded = Math.min(this.#silent, (this.#rateHz * LONGEST_PAUSE_MS) / 1000); // since the last word
    const cut = this.#items.map(({ itemId, played }) => ({ itemId, playedMs: this.#ms(Math.max(0, played - unsounded)) }));
    this.#items = [];
    for (const { itemId } of cut) {
      this.#forget(itemId);
    }
    this.#isGated = true;
    this.#unclaimed = 0;
    return cut;
  }

  /** The server goes on from `playedMs` of an item that was held: its next sound is from there. */
  goBack(itemId, playedMs) {
    const [item] = this.#items;
    if (item?.itemId === itemId && item.hasStarted) {
      item.played = Math.round((Math.max(0, playedMs) * this.#rateHz) / 1000);
      item.isAwaited = true;
    }
  }

  /** An item that was flushed may be expected again. */
  goOn(itemId) {
    this.#ended.delete(itemId);
  }

  /**
   * Take the next samples of the track and give what is to be heard to `output`. Returns what happened on the way:
   * [{kind: "started" | "ended", itemId}].
   */
  take(input, output) {
    this.#measure(input);
    const happened = this.#isGated ? [] : this.#follow(input.length);
    this.#shape(input, output);
    return happened;
  }

  /** The item being heard and how much of it: {itemId, playedMs}, or null. */
  position() {
    const [item] = this.#items;
    return item?.hasStarted ? { itemId: item.itemId, playedMs: this.#ms(item.played) } : null;
  }

  #measure(input) {
    if (input.some((sample) => Math.abs(sample) > AUDIBLE)) {
      this.#silent = 0;
    } else {
      this.#silent += input.length;
    }
    if (this.#isGated && this.#ms(this.#silent) >= STOPPED_SILENCE_MS) {
      this.#isGated = false;
    }
  }

  #follow(length) {
    const happened = this.#passed(length);
    const [item] = this.#items;
    if (!item) {
      this.#unclaimed = this.#silent === 0 ? this.#unclaimed + length : 0;
      return happened;
    }
    if (!item.hasStarted && this.#silent === 0) {
      item.hasStarted = true;
      happened.push({ kind: "started", itemId: item.itemId });
    }
    item.isAwaited &&= this.#silent > 0;
    if (item.hasStarted && !item.isAwaited && this.#ms(this.#silent) <= LONGEST_PAUSE_MS) {
      item.played += length;
    }
    return happened;
  }

  /** An item is over when all of it was sent and nothing of it sounds any more. */
  #passed(length) {
    const [item] = this.#items;
    if (!item?.isComplete) {
      return [];
    }
    item.waited += length;
    const isOver = item.hasStarted ? this.#ms(this.#silent) >= ENDING_SILENCE_MS : this.#ms(item.waited) >= MUTE_ITEM_MS;
    if (!isOver) {
      return [];
    }
    this.#items.shift();
    this.#forget(item.itemId);
    return item.hasStarted ? [{ kind: "ended", itemId: item.itemId }] : [];
  }

  #shape(input, output) {
    const step = 1000 / (FADE_MS * this.#rateHz);
    for (let index = 0; index < output.length; index += 1) {
      this.#gain = this.#isGated ? Math.max(0, this.#gain - step) : Math.min(1, this.#gain + step);
      output[index] += (input[index] ?? 0) * this.#gain;
    }
  }

  #forget(itemId) {
    this.#ended.add(itemId);
    for (const oldest of [...this.#ended].slice(0, -REMEMBERED_ENDS)) {
      this.#ended.delete(oldest);
    }
  }

  #ms(samples) {
    return Math.round((samples * 1000) / this.#rateHz);
  }
}
