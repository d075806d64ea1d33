// One conversation over one WebSocket: JSON events both ways, audio as base64 inside them.

import { base64FromInt16 } from "../audio/pcm.js";
import * as events from "../events.js";
import { GOES_ON_ELSEWHERE } from "./failure.js";

const OPEN_TIMEOUT_MS = 10000;
const LARGEST_BACKLOG_BYTES = 256 * 1024; // about six seconds of speech that the network did not take

/** Events: `event` (detail: one server event), `close` (detail {code, reason, wasOpen}), `congested` (detail: boolean). */
export class WebSocketTransport extends EventTarget {
  #url;
  #socket = null;
  #isCongested = false;

  /** `path`: address of the socket on this host; `query`: {model, time_zone}. */
  constructor(path, query) {
    super();
    this.#url = new URL(path, location.href);
    this.#url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.#url.search = new URLSearchParams(query).toString();
  }

  get name() {
    return "WebSocket";
  }

  /** Resolves when the socket is open; rejects when it closes first or 10 s pass. */
  connect() {
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      let wasOpen = false;
      const timer = setTimeout(() => socket.close(), OPEN_TIMEOUT_MS);
      socket.addEventListener("open", () => {
        clearTimeout(timer);
        wasOpen = true;
        resolve();
      });
      socket.addEventListener("message", ({ data }) => {
        this.dispatchEvent(new CustomEvent("event", { detail: JSON.parse(data) }));
      });
      socket.addEventListener("close", ({ code, reason }) => {
        clearTimeout(timer);
        reject(new Error(`The socket closed with ${code}.`));
        this.dispatchEvent(new CustomEvent("close", { detail: { code, reason, wasOpen } }));
      });
    });
  }

  /** Returns whether the event left. */
  send(event) {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      return false;
    }
    this.#socket.send(JSON.stringify(event));
    return true;
  }

  /** Send microphone samples; while the network lags far behind they are dropped, and `congested` is told. */
  sendAudio(pcm) {
    const isCongested = (this.#socket?.bufferedAmount ?? 0) > LARGEST_BACKLOG_BYTES;
    if (isCongested !== this.#isCongested) {
      this.#isCongested = isCongested;
      this.dispatchEvent(new CustomEvent("congested", { detail: isCongested }));
    }
    return !isCongested && this.send(events.audioAppend(base64FromInt16(pcm)));
  }

  close() {
    this.#socket?.close(1000);
  }

  /** Give up the connection, and not the session. */
  abandon() {
    this.#socket?.close(GOES_ON_ELSEWHERE);
  }
}
