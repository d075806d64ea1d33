// Whose turn it is: what the conversation's events add up to while it is live.

const REPLY_PATIENCE_MS = 8000;

/** Event: `change`. */
export class Turn extends EventTarget {
  #isUserSpeaking = false;
  #isAwaitingReply = false;
  #responseId = null;
  #patience = null;

  get isUserSpeaking() {
    return this.#isUserSpeaking;
  }

  /** A reply is being made, or is expected. */
  get isReplyDue() {
    return this.#responseId !== null || this.#isAwaitingReply;
  }

  /** The state to show; `isAudible`: the assistant's voice is to be heard right now. */
  state(isAudible) {
    if (this.#isUserSpeaking) {
      return "user-speaking";
    }
    if (isAudible) {
      return "ai-speaking";
    }
    return this.isReplyDue ? "processing" : "listening";
  }

  userStarted() {
    this.#isUserSpeaking = true;
    this.awaitReply(false);
  }

  /** `isValid`: a reply follows. */
  userStopped(isValid) {
    this.#isUserSpeaking = false;
    this.awaitReply(isValid);
  }

  replyStarted(responseId) {
    this.#responseId = responseId;
    this.awaitReply(false);
  }

  replyEnded() {
    this.#responseId = null;
    this.#changed();
  }

  /** A reply is expected; when none begins within 8 s (nobody said a word, say) the page listens again. */
  awaitReply(isAwaiting) {
    clearTimeout(this.#patience);
    this.#isAwaitingReply = isAwaiting;
    if (isAwaiting) {
      this.#patience = setTimeout(() => this.awaitReply(false), REPLY_PATIENCE_MS);
    }
    this.#changed();
  }

  /** The connection is gone, and everything with it. */
  forget() {
    this.#isUserSpeaking = false;
    this.#responseId = null;
    this.awaitReply(false);
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
