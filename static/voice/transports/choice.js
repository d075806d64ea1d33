// Which transport carries the next conversation: the person's wish, what server and browser offer, what this network lets through.

import { AoqTransport, hasAoq } from "./aoq.js";
import { MediaPath } from "./media_path.js";
import { WebRTCTransport } from "./webrtc.js";
import { WebSocketTransport } from "./websocket.js";
import { storageOf } from "../storage.js";

const PATIENCE_MS = 8000;
const PATIENCE_WITH_FALLBACK_MS = 4000; // where media get through at all, a path is found within two seconds
const LADDER = ["AOQ", "WebRTC", "WebSocket"]; // the best first
const WISHES = { aoq: "AOQ", webrtc: "WebRTC", websocket: "WebSocket" };
const LOST = 1006;
const HOPELESS = ["unreachable", "busy"]; // another transport would be told the same

export class TransportChoice {
  #preferences;
  #readiness;
  #sound;
  #paths;
  #failures = new Map(); // by transport: what became of the last attempt
  #isAoqLost = false; // it was cut a moment ago: what comes next begins with another way

  /** `readiness` knows what /voice/config said last; `storage` keeps what calls have shown of this network. */
  constructor({ preferences, readiness, sound, storage = storageOf("localStorage") }) {
    this.#preferences = preferences;
    this.#readiness = readiness;
    this.#sound = sound;
    this.#paths = { AOQ: new MediaPath(storage, Date.now, "voiceapp.no_aoq_path_until"), WebRTC: new MediaPath(storage) };
    const tryAgain = () => {
      for (const path of Object.values(this.#paths)) {
        path.forget(); // another network, or another wish
      }
    };
    window.addEventListener("online", tryAgain);
    navigator.connection?.addEventListener?.("change", tryAgain);
    preferences.addEventListener("change", ({ detail }) => detail === "transport" && tryAgain());
  }

  /** Name of the transport to be used now. */
  get preferred() {
    return this.#rungs()[0];
  }

  /**
   * A fresh transport, or null when none is left to be tried. `failed`: those that did not come up in this attempt,
   * [{name, failure}]; `query`: what the server is told besides the model.
   */
  make(failed, query) {
    const last = failed.at(-1);
    if (!last) {
      this.#failures.clear();
      const rungs = this.#rungs();
      const first = this.#isAoqLost && rungs.length > 1 ? rungs.find((name) => name !== "AOQ") : rungs[0];
      this.#isAoqLost = false;
      return this.#made(first, query);
    }
    this.#failures.set(last.name, last.failure);
    if (last.failure?.kind === "unreachable") {
      this.#paths.AOQ.forget(); // what was in the way may have been the server
    }
    if (last.failure?.kind === "no_path") {
      this.#paths[last.name]?.block(this.#calledBy(last.name));
    }
    const next = this.#rungs().find((name) => !failed.some((attempt) => attempt.name === name));
    return HOPELESS.includes(last.failure?.kind) || last.name === "WebSocket" || !next ? null : this.#made(next, query);
  }

  /** Why a better transport than this one is not used, one sentence each. */
  whyNot(used) {
    return LADDER.slice(0, LADDER.indexOf(used)).map((name) => `${name}: ${this.#obstacle(name)}`);
  }

  #obstacle(name) {
    if (!this.#offers.includes(name.toLowerCase())) {
      return "the server does not offer it now.";
    }
    if (!this.#isPossible(name)) {
      return "this browser cannot do it.";
    }
    if (this.#failures.has(name)) {
      return this.#failures.get(name)?.serverMessage || this.#failures.get(name)?.message || "it did not come up.";
    }
    return this.#isWished(name) ? "it did not come up." : "not chosen, or blocked by this network within the last hour.";
  }

  /** What may be tried now, the best first; never empty. */
  #rungs() {
    const possible = LADDER.filter((name) => this.#isPossible(name));
    const wished = possible.filter((name) => name === "WebSocket" || this.#isWished(name));
    return wished.length > 0 ? wished : [possible[0] ?? "WebSocket"];
  }

  get #config() {
    return this.#readiness.config;
  }

  /** By which transports the chosen model is to be had. */
  get #offers() {
    const model = this.#config.models.find(({ name }) => name === this.#preferences.model);
    return model?.transports ?? ["websocket"];
  }

  #isPossible(name) {
    if (!this.#offers.includes(name.toLowerCase())) {
      return false;
    }
    const can = { AOQ: hasAoq, WebRTC: () => "RTCPeerConnection" in window };
    return name === "WebSocket" || (can[name]() && !this.#sound.isSilent);
  }

  /** Push to talk ends turns by hand, which only the WebSocket can. */
  #isWished(name) {
    const { transport, isPushToTalk } = this.#preferences;
    return !isPushToTalk && (WISHES[transport] === name || (transport === "automatic" && this.#paths[name].isOpen(this.#calledBy(name))));
  }

  /** Relays that were started again may be reached where those before were not. */
  #calledBy(name) {
    return name === "AOQ" ? this.#config.aoq_relays : "";
  }

  #made(name, resumption) {
    const transport = makeTransport(name, { model: this.#preferences.model, ...resumption }, {
      readiness: this.#readiness,
      sound: this.#sound,
      patienceMs: this.#offers.includes("websocket") ? PATIENCE_WITH_FALLBACK_MS : PATIENCE_MS,
    });
    if (name === "AOQ") {
      transport.addEventListener("close", ({ detail }) => {
        this.#isAoqLost = detail.wasOpen && detail.code === LOST;
      });
    }
    return transport;
  }
}

/** The transport of this name; `query`: what the server is told, the model and what resumes a session. */
export function makeTransport(name, query, { readiness, sound, patienceMs = PATIENCE_MS, relayPatienceMs = undefined }) {
  const { config } = readiness;
  const whole = { time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone, ...config.query, ...query };
  if (name === "WebSocket") {
    return new WebSocketTransport(config.socket_path, whole);
  }
  if (name === "AOQ") {
    return new AoqTransport(config.aoq_path, whole, {
      sound,
      patienceMs: relayPatienceMs,
      csrfToken: async () => (await readiness.freshConfig()).csrf_token,
    });
  }
  return new WebRTCTransport(config.webrtc_path, whole, {
    sound,
    patienceMs,
    settings: async () => {
      const current = await readiness.freshConfig();
      return { csrfToken: current.csrf_token, ice: { iceServers: current.ice_servers } };
    },
  });
}
