// The assistant's voice: pieces of sound to the loudspeaker, and word of what was heard to the conversation.

import { int16FromBase64 } from "./audio/pcm.js";
import { SERVER } from "./events.js";
import { outputRateHz } from "./session_settings.js";

const DUCKED_MS = 600; // longer, and too many words would be hidden: it waits, as the server does with a media track

/** Event: `change` when the voice begins or ends. */
export class ResponseAudio extends EventTarget {
  #playback;
  #conversation;
  #firstPieceAt = new Map();
  #sampleRateHz = 24000;
  #holding = null; // the timer, while it is ducked
  #isHeld = false;

  /** How long the sound of a media track is on its way, in ms, or null while unknown. */
  trackPlayoutMs = null;

  constructor(playback, conversation) {
    super();
    this.#playback = playback;
    this.#conversation = conversation;
    playback.addEventListener("started", ({ detail }) => this.#started(detail.itemId));
    playback.addEventListener("position", ({ detail }) => {
      conversation.heardUntil(detail.itemId, Math.max(0, detail.playedMs - playback.deviceLatencyMs));
    });
    playback.addEventListener("heard", ({ detail }) => {
      conversation.addAudio(detail.itemId, detail.pcm, detail.sampleRateHz);
    });
    playback.addEventListener("ended", ({ detail }) => {
      conversation.heardToTheEnd(detail.itemId);
      this.dispatchEvent(new Event("change"));
    });
  }

  /** The item to be heard right now, or null. */
  get speaking() {
    return this.#playback.speaking === null ? null : this.#conversation.find(this.#playback.speaking);
  }

  get isAudible() {
    return this.#playback.speaking !== null;
  }

  /** Take one server event; what is not about sound is ignored. */
  receive(event) {
    switch (event.type) {
      case SERVER.SESSION_CREATED:
        this.#sampleRateHz = outputRateHz(event.session);
        this.duck(false); // what ducked it was said to a session that is gone
        break;
      case SERVER.SESSION_UPDATED:
        this.#sampleRateHz = outputRateHz(event.session);
        break;
      case SERVER.CONTENT_PART_ADDED:
        if (event.part.type === "audio") {
          this.#expect(event.item_id);
        }
        break;
      case SERVER.AUDIO_DELTA:
        this.#play(event);
        break;
      case SERVER.AUDIO_DUCKED:
        this.duck(true);
        break;
      case SERVER.AUDIO_RESTORED:
        this.#restore(event);
        break;
      case SERVER.AUDIO_DONE:
        this.#playback.end(event.item_id);
        break;
      case SERVER.RESPONSE_DONE:
        for (const item of event.response.output ?? []) {
          this.#playback.end(item.id);
        }
        break;
      default:
    }
  }

  #play({ item_id: itemId, delta }) {
    const pcm = int16FromBase64(delta);
    if (!this.#firstPieceAt.has(itemId)) {
      this.#firstPieceAt.set(itemId, performance.now());
    }
    this.#conversation.addAudio(itemId, Int16Array.from(pcm), this.#sampleRateHz);
    this.#playback.push(itemId, pcm, this.#sampleRateHz);
  }

  /** An answer in sound begins; on a media track, its samples will not say whose they are. */
  #expect(itemId) {
    if (this.#playback.isFollowing) {
      this.#conversation.followSound(itemId);
      this.#playback.expect(itemId);
    }
  }

  /** Somebody may be speaking into it: play it quietly, or as loud as before. */
  duck(isOn) {
    clearTimeout(this.#holding);
    this.#playback.duck(isOn);
    this.#hold(false);
    if (isOn && !this.#playback.isFollowing) {
      this.#holding = setTimeout(() => this.#hold(true), DUCKED_MS);
    }
  }

  #hold(isOn) {
    if (isOn !== this.#isHeld) {
      this.#isHeld = isOn;
      this.#playback.hold(isOn);
    }
  }

  /** It was no interruption. What waited goes on from the beginning of a word. */
  #restore({ item_id: itemId, audio_start_ms: startMs }) {
    if (itemId && (this.#isHeld || this.#playback.isFollowing)) {
      this.#playback.goBack(itemId, startMs);
      if (this.#playback.isFollowing) {
        this.#conversation.goBack(itemId, startMs);
      }
    }
    this.duck(false);
  }

  /** Silence at once; resolves to what was cut, [{itemId, heardMs}]. */
  async cut() {
    const cut = await this.#playback.flush();
    for (const { itemId, heardMs } of cut) {
      this.#conversation.cutShort(itemId, heardMs);
      this.#firstPieceAt.delete(itemId);
    }
    this.dispatchEvent(new Event("change"));
    return cut;
  }

  /** Silence at once, of what may go on; resolves to what was cut, [{itemId, heardMs}]. */
  async pause() {
    const cut = await this.#playback.flush();
    this.dispatchEvent(new Event("change"));
    return cut;
  }

  /** An item that was cut goes on from where it was heard. */
  goOn(itemId, heardMs) {
    this.#conversation.goOn(itemId, heardMs, { isFollowed: this.#playback.isFollowing });
    this.#playback.goOn(itemId, heardMs);
  }

  #started(itemId) {
    const arrivedAt = this.#firstPieceAt.get(itemId);
    if (arrivedAt !== undefined) {
      const waitedMs = performance.now() - arrivedAt + this.#playback.deviceLatencyMs;
      this.#conversation.setPlayout(itemId, Math.round(waitedMs));
      this.#firstPieceAt.delete(itemId);
    } else if (this.#playback.isFollowing && this.trackPlayoutMs !== null) {
      this.#conversation.setPlayout(itemId, this.trackPlayoutMs + this.#playback.deviceLatencyMs);
    }
    this.dispatchEvent(new Event("change"));
  }
}
