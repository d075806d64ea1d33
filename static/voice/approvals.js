// Calls of tools that the assistant may only make when the person allows them, one after the other.

const UNSEEN = /[^\P{C}\n]|[\u2028\u2029]/gu; // it could make one call look like another

export class Approvals {
  #waiting = [];
  #notices;
  #answer;

  /** `answer(requestId, isAllowed)` tells the server, and returns whether it could: in an outage it is asked again. */
  constructor(notices, answer) {
    this.#notices = notices;
    this.#answer = answer;
  }

  /** Ask the person about a call: {id, server_label, name, arguments}. */
  ask(request) {
    this.#waiting.push(request);
    if (this.#waiting.length === 1) {
      this.#show();
    }
  }

  /** The person's word on the call that is shown. */
  decide(isAllowed) {
    const [request] = this.#waiting;
    if (request && this.#answer(request.id, isAllowed)) {
      this.#waiting.shift();
    }
    this.#show();
  }

  /** The conversation in which they were asked for is over. */
  clear() {
    this.#waiting = [];
    this.#notices.remove("approval");
  }

  #show() {
    const [request] = this.#waiting;
    if (request) {
      const values = { tool: visible(request.name), server: visible(request.server_label) };
      this.#notices.show({ code: "approval", values, details: visible(pretty(request.arguments)) });
    }
  }
}

/** `text` with what cannot be seen in it written out. */
function visible(text) {
  return text.replace(UNSEEN, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
}

/** Arguments on lines of their own, and as they came where they are not JSON; none, where there are none. */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return Object.keys(value).length === 0 ? "" : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}
