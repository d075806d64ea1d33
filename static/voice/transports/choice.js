// Which transport carries the next conversation: the person's wish, what server and browser offer, what this network lets through.

import { WebRTCTransport } from "./webrtc.js";
import { WebSocketTransport } from "./websocket.js";

export class TransportChoice {
  #preferences;
  #readiness;
  #sound;
  #hasMediaPath = true; // until a call has shown otherwise

  /** `readiness` knows what /voice/config said last. */
  constructor({ preferences, readiness, sound }) {
    this.#preferences = preferences;
    this.#readiness = readiness;
    this.#sound = sound;
    const tryAgain = () => {
      this.#hasMediaPath = true; // another network, or another wish
    };
    window.addEventListener("online", tryAgain);
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
      this.#hasMediaPath = false;
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
    return !isPushToTalk && (transport === "webrtc" || (transport === "automatic" && this.#hasMediaPath));
  }

  #made(name) {
    const query = { model: this.#preferences.model, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone };
    if (name === "WebSocket") {
      return new WebSocketTransport(this.#config.socket_path, query);
    }
    return new WebRTCTransport(this.#config.webrtc_path, query, {
      sound: this.#sound,
      settings: async () => {
        const config = await this.#readiness.freshConfig();
        return { csrfToken: config.csrf_token, ice: { iceServers: config.ice_servers } };
      },
    });
  }
}
