// Which transport carries the next conversation: the person's wish, what server and browser offer, what this network lets through.

import { MediaPath } from "./media_path.js";
import { WebRTCTransport } from "./webrtc.js";
import { WebSocketTransport } from "./websocket.js";

const PATIENCE_MS = 8000;
const PATIENCE_WITH_FALLBACK_MS = 4000; // where media get through at all, a path is found within two seconds

export class TransportChoice {
  #preferences;
  #readiness;
  #sound;
  #mediaPath;

  /** `readiness` knows what /voice/config said last; `storage` keeps what calls have shown of this network. */
  constructor({ preferences, readiness, sound, storage = window.localStorage }) {
    this.#preferences = preferences;
    this.#readiness = readiness;
    this.#sound = sound;
    this.#mediaPath = new MediaPath(storage);
    const tryAgain = () => this.#mediaPath.forget(); // another network, or another wish
    window.addEventListener("online", tryAgain);
    navigator.connection?.addEventListener?.("change", tryAgain);
    preferences.addEventListener("change", ({ detail }) => detail === "transport" && tryAgain());
  }

  /** Name of the transport to be used now. */
  get preferred() {
    return this.#isWebRTCPossible && (this.#isWebRTCWished || !this.#offers.includes("websocket")) ? "WebRTC" : "WebSocket";
  }

  /**
   * A fresh transport, or null when none is left to be tried. `failed`: those that did not come up in this attempt,
   * [{name, failure}].
   */
  make(failed) {
    const last = failed.at(-1);
    if (last?.failure?.kind === "no_path") {
      this.#mediaPath.block();
    }
    if (!last) {
      return this.#made(this.preferred);
    }
    const isHopeless = ["unreachable", "busy"].includes(last.failure?.kind);
    const isWorthIt = last.name === "WebRTC" && !isHopeless && this.#offers.includes("websocket");
    return isWorthIt ? this.#made("WebSocket") : null;
  }

  get #config() {
    return this.#readiness.config;
  }

  /** By which transports the chosen model is to be had. */
  get #offers() {
    const model = this.#config.models.find(({ name }) => name === this.#preferences.model);
    return model?.transports ?? ["websocket"];
  }

  get #isWebRTCPossible() {
    return this.#offers.includes("webrtc") && "RTCPeerConnection" in window && !this.#sound.isSilent;
  }

  /** Push to talk ends turns by hand, which only the WebSocket can. */
  get #isWebRTCWished() {
    const { transport, isPushToTalk } = this.#preferences;
    return !isPushToTalk && (transport === "webrtc" || (transport === "automatic" && this.#mediaPath.isOpen));
  }

  #made(name) {
    const query = { model: this.#preferences.model, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone };
    if (name === "WebSocket") {
      return new WebSocketTransport(this.#config.socket_path, query);
    }
    return new WebRTCTransport(this.#config.webrtc_path, query, {
      sound: this.#sound,
      patienceMs: this.#offers.includes("websocket") ? PATIENCE_WITH_FALLBACK_MS : PATIENCE_MS,
      settings: async () => {
        const config = await this.#readiness.freshConfig();
        return { csrfToken: config.csrf_token, ice: { iceServers: config.ice_servers } };
      },
    });
  }
}
