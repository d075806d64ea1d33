// One conversation over one peer connection: JSON events on a data channel, sound as media tracks both ways.

import { SERVER } from "../events.js";
import { TransportFailure } from "./failure.js";
import { linkQuality, packetsReceived } from "./quality.js";
import { SessionReport } from "./session_report.js";

const CHANNEL = "svc-events";
const GATHERING_TIMEOUT_MS = 2000; // what was found by then must do; the server never hears of later candidates
const ANSWER_TIMEOUT_MS = 10000;
const DISCONNECTED_PATIENCE_MS = 2000; // on top of the five seconds or so after which the browser says so
const GOODBYE_MS = 3000; // for a server that does not answer
const ABANDONED_MS = 10000; // by then the session goes on over another connection, or not at all
const LEFT = 1001;
const LOST = 1006;
const TIME_IS_UP = 4000;
const QUALITY_EVERY_MS = 2000;
const LOOK_EVERY_MS = 500;
const SILENT_MS = 3000; // our server sends a packet at least every 400 ms; shorter gaps are bridged
const BUSY = [429, 502, 503, 504];
const LARGEST_BACKLOG_BYTES = 256 * 1024;

/**
 * Events: `event` (detail: one server event), `close` (detail {code, reason, wasOpen}), `quality` (detail {rttMs,
 * lossShare, playoutMs}, each null while unknown).
 */
export class WebRTCTransport extends EventTarget {
  #url;
  #settings;
  #sound;
  #patienceMs;
  #peer = null;
  #channel = null;
  #sender = null;
  #report = null; // of a session that our server does not see
  #isClosed = false;
  #wasOpen = false;
  #ending = { code: LOST, reason: "" };
  #patience = null;
  #measuring = null;
  #looking = null;
  #received = 0; // packets of sound
  #receivedAt = 0;
  #unplug = new AbortController();

  /**
   * `path`: where offers are answered on this host; `query`: {model, time_zone}; `sound`: whose microphone is sent and
   * whose loudspeaker plays the replies; `patienceMs`: how long a path for media may take to be found;
   * `settings()` resolves to {csrfToken, ice}, the latter for RTCPeerConnection.
   */
  constructor(path, query, { sound, patienceMs, settings }) {
    super();
    this.#url = new URL(path, location.href);
    this.#url.search = new URLSearchParams(query).toString();
    this.#sound = sound;
    this.#patienceMs = patienceMs;
    this.#settings = settings;
  }

  get name() {
    return "WebRTC";
  }

  /** Resolves when the data channel is open; rejects with a TransportFailure. */
  async connect() {
    try {
      const { csrfToken, ice } = await this.#settings();
      const peer = this.#makePeer(ice);
      addEventListener("pagehide", () => this.#leave(), { signal: this.#unplug.signal });
      await peer.setLocalDescription();
      await this.#gathered(peer);
      const sdp = await this.#exchange(peer.localDescription.sdp, csrfToken);
      await Promise.all([peer.setRemoteDescription({ type: "answer", sdp }), this.#opened(peer)]);
    } catch (error) {
      this.#end();
      throw error instanceof TransportFailure ? error : new TransportFailure("refused", error.message);
    }
    this.#wasOpen = true;
    this.#report?.connected();
    this.#measuring = setInterval(() => this.#measure(), QUALITY_EVERY_MS);
    if (!this.#report) { // another service may send nothing while it has nothing to say
      this.#receivedAt = performance.now();
      this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS);
    }
  }

  /** Returns whether the event left. */
  send(event) {
    if (this.#channel?.readyState !== "open" || this.#channel.bufferedAmount > LARGEST_BACKLOG_BYTES) {
      return false;
    }
    this.#channel.send(JSON.stringify(event));
    return true;
  }

  /** The microphone's track carries the sound; there is nothing to send beside it. */
  sendAudio() {
    return false;
  }

  close() {
    this.#ending = { code: 1000, reason: "" };
    this.#end();
  }

  /** Give up the connection, and not the session. */
  abandon() {
    this.#end();
  }

  // ── Setting up ───────────────────────────────────────────────────────────────────────────────────────────────────

  #makePeer(configuration) {
    if (this.#isClosed) {
      throw new TransportFailure("refused", "Closed before it was open.");
    }
    const peer = new RTCPeerConnection(configuration);
    this.#peer = peer;
    this.#channel = peer.createDataChannel(CHANNEL);
    this.#listen(this.#channel);
    peer.addEventListener("datachannel", ({ channel }) => this.#listen(channel));
    peer.addEventListener("connectionstatechange", () => this.#stateChanged());
    peer.addEventListener("track", ({ track }) => this.#sound.playback.follow(new MediaStream([track])));
    const { capture } = this.#sound;
    this.#sender = peer.addTransceiver("audio", { direction: "sendrecv" }).sender;
    const plug = () => {
      this.#sender.replaceTrack(capture.track).catch(() => {}); // the connection closed meanwhile
    };
    capture.addEventListener("track", plug, { signal: this.#unplug.signal });
    plug();
    return peer;
  }

  #gathered(peer) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, GATHERING_TIMEOUT_MS);
      const look = () => {
        if (peer.iceGatheringState === "complete") {
          clearTimeout(timer);
          resolve();
        }
      };
      peer.addEventListener("icegatheringstatechange", look);
      look();
    });
  }

  /** The server's answer to our offer. */
  async #exchange(offer, csrfToken) {
    let response;
    try {
      response = await fetch(this.#url, {
        method: "POST",
        body: offer,
        headers: { "Content-Type": "application/sdp", Accept: "application/sdp", "X-CSRFToken": csrfToken },
        signal: AbortSignal.any([this.#unplug.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
      });
    } catch (error) {
      throw new TransportFailure("unreachable", error.message);
    }
    if (!response.ok) {
      const { message } = await response.json().catch(() => ({})); // a proxy in between writes HTML
      const kind = BUSY.includes(response.status) ? "busy" : "refused";
      throw new TransportFailure(kind, `The server answered ${response.status}.`, message);
    }
    const reportTo = response.headers.get("X-Session-Report");
    this.#report = reportTo && new SessionReport(reportTo, () => this.#expire());
    return response.text();
  }

  #opened(peer) {
    return new Promise((resolve, reject) => {
      const give = () => reject(new TransportFailure("no_path", "No path to the server was found."));
      const timer = setTimeout(give, this.#patienceMs);
      this.#channel.addEventListener("open", () => {
        clearTimeout(timer);
        resolve();
      });
      this.#unplug.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(new TransportFailure("refused", "Closed before it was open."));
      });
      peer.addEventListener("connectionstatechange", () => peer.connectionState === "failed" && give());
    });
  }

  /** Either side may have opened the channel that the events come on. */
  #listen(channel) {
    channel.addEventListener("message", ({ data }) => {
      const event = JSON.parse(data);
      if (event.type === SERVER.SESSION_CLOSING) {
        this.#ending = { code: event.code, reason: event.reason };
      } else if (event.type === SERVER.SESSION_FINISHED) {
        this.#ending = { code: 1000, reason: "" };
      }
      this.dispatchEvent(new CustomEvent("event", { detail: event }));
    });
    channel.addEventListener("close", () => this.#end());
  }

  // ── Keeping an eye on it, and ending it ──────────────────────────────────────────────────────────────────────────

  #stateChanged() {
    clearTimeout(this.#patience);
    const { connectionState } = this.#peer;
    if (connectionState === "disconnected") {
      this.#patience = setTimeout(() => this.#end(), DISCONNECTED_PATIENCE_MS);
    } else if (connectionState === "failed" || connectionState === "closed") {
      this.#end();
    }
  }

  /** A path that was cut shows by its silence, seconds before the browser says so. */
  async #look() {
    const received = packetsReceived([...(await this.#peer.getStats()).values()]);
    const now = performance.now();
    if (received !== this.#received || document.visibilityState === "hidden") {
      this.#received = received;
      this.#receivedAt = now;
    } else if (now - this.#receivedAt > SILENT_MS) {
      this.#end();
    }
  }

  async #measure() {
    const quality = linkQuality([...(await this.#peer.getStats()).values()]);
    if (!this.#isClosed) {
      this.dispatchEvent(new CustomEvent("quality", { detail: quality }));
    }
  }

  /** Our server counts a session as ended that another service still holds. */
  #expire() {
    this.#ending = { code: TIME_IS_UP, reason: "" };
    this.#end();
  }

  /** The page is being closed or left: a connection that only falls silent is missed seconds later, as if it were lost. */
  #leave() {
    this.#report?.ended(LEFT);
    this.#channel?.close();
    this.#peer.close();
  }

  #end() {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    clearTimeout(this.#patience);
    clearInterval(this.#measuring);
    clearInterval(this.#looking);
    this.#unplug.abort();
    this.#report?.ended(this.#ending.code);
    this.#sound.playback.follow(null);
    const peer = this.#peer;
    if (this.#wasOpen && this.#ending.code === LOST) {
      this.#sender.replaceTrack(null).catch(() => {});
      setTimeout(() => peer.close(), ABANDONED_MS); // a goodbye that gets through would end the session
    } else if (this.#wasOpen) {
      this.#sender.replaceTrack(null).catch(() => {});
      const over = () => peer.close();
      this.#channel.addEventListener("close", over); // once the server has what is on its way, such as that we are finished
      this.#channel.close();
      setTimeout(over, this.#channel.readyState === "closed" ? 0 : GOODBYE_MS);
    } else {
      peer?.close();
    }
    this.dispatchEvent(new CustomEvent("close", { detail: { ...this.#ending, wasOpen: this.#wasOpen } }));
  }
}
