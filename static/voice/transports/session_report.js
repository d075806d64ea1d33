// What this page tells its server of a session that another service holds: that it is up, and that it has ended.

const OVER = 404; // the server counts it as ended
const EVERY_MS = 60000; // the server takes 150 s of silence for the end

export class SessionReport {
  #url;
  #repeating = null;
  #isOver = false;
  #wasTaken = false;
  #over;

  /**
   * `url`: where the server takes reports of this session; `over()` is called when it counts as ended there a session
   * that it has known: its time is up, say.
   */
  constructor(url, over) {
    this.#url = url;
    this.#over = over;
  }

  /** Say so now, and again every minute until it has ended. */
  connected() {
    if (!this.#isOver) {
      this.#send({ state: "connected" });
      this.#repeating = setInterval(() => this.#send({ state: "connected" }), EVERY_MS);
    }
  }

  /** `code`: why, as a close code of a WebSocket. */
  ended(code) {
    if (!this.#isOver) {
      this.#isOver = true;
      clearInterval(this.#repeating);
      this.#send({ state: "ended", code });
    }
  }

  /** Sent even when the page is being left; what does not arrive shows by the silence after it. */
  #send(report) {
    const headers = { "Content-Type": "application/json" };
    fetch(this.#url, { method: "POST", body: JSON.stringify(report), headers, keepalive: true }).then(
      ({ ok, status }) => this.#answered(ok, status),
      () => {},
    );
  }

  #answered(ok, status) {
    this.#wasTaken ||= ok;
    if (status === OVER && !this.#isOver) {
      clearInterval(this.#repeating);
      this.#isOver = this.#wasTaken;
      if (this.#wasTaken) {
        this.#over();
      }
    }
  }
}
