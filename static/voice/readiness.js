// Whether a conversation can start, by the server's own word.

const STEP_MS = 700;
const FRESH_MS = 30000;
const CONFIG_TIMEOUT_MS = 8000; // in a dead network, the browser would wait for minutes

/** What the server offers now; asking also renews the cookie by which the socket knows us. */
export async function serverConfig(configUrl, waits = false) {
  const signal = AbortSignal.timeout(CONFIG_TIMEOUT_MS);
  const url = new URL(configUrl, location.href);
  if (waits) {
    url.searchParams.set("waits", "1");
  }
  const response = await fetch(url, { cache: "no-store", headers: { Accept: "application/json" }, signal }).catch(
    (cause) => {
      throw unreachable(cause.message);
    },
  );
  if (!response.ok) {
    throw unreachable(`The server sent ${response.status}.`, response.status === 401 ? "signed_out" : "unreachable");
  }
  return response.json();
}

function unreachable(message, code = "unreachable") {
  return Object.assign(new Error(message), { code });
}

/** What is in the way, as a notice shows it. */
export function problem(code, message = "", reasons = []) {
  return { code, message: message ?? "", reasons };
}

/**
 * What a notice says of a conversation that nothing stood in the way of, but that no transport brought up: [{name,
 * failure}]. Not every transport lets the server say why.
 */
export function refusal(failed) {
  const failure = (failed.findLast((one) => one.failure?.serverMessage) ?? failed.at(-1))?.failure;
  return failure?.kind === "no_path" ? problem("no_path") : problem("refused", failure?.serverMessage);
}

/** What notices say of transports that did not come up before the one in use: [{name, failure}]. */
export function fallbackProblems(failed) {
  return failed
    .filter(({ name }) => name === "WebRTC")
    .map(({ failure }) => problem(failure?.kind === "no_path" ? "no_udp" : "no_webrtc"));
}

export class Readiness {
  #fetchConfig;
  #config = null;
  #askedAt = -Infinity;

  /** `fetchConfig(waits)` asks the server; it rejects with an error whose `code` may name a notice. */
  constructor(fetchConfig) {
    this.#fetchConfig = fetchConfig;
  }

  /** What the server said last, or null. */
  get config() {
    return this.#config;
  }

  /** What the server says now, or said just before. Rejects as `fetchConfig` does. */
  async freshConfig({ waits = false } = {}) {
    if (performance.now() - this.#askedAt > FRESH_MS) {
      this.#config = await this.#fetchConfig(waits);
      this.#askedAt = performance.now();
    }
    return this.#config;
  }

  /** What stands in the way now, or null. A page that `waits` has a place in the queue of a full server. */
  async obstacle(options = {}) {
    try {
      this.#askedAt = -Infinity;
      const { ready, reasons } = await this.freshConfig(options);
      return ready ? null : problem(reasons[0]?.code ?? "not_ready", "", reasons);
    } catch (error) {
      return problem(error.code ?? "unreachable");
    }
  }

  /** The same, but a server that says that it is still loading its engines is waited for while `isWanted()`; `onWait()` is told. */
  async patientObstacle(isWanted, onWait) {
    for (;;) {
      const obstacle = await this.obstacle();
      if (obstacle?.code !== "warming_up" || !isWanted()) {
        return obstacle;
      }
      onWait();
      await new Promise((resolve) => {
        setTimeout(resolve, STEP_MS);
      });
    }
  }
}
