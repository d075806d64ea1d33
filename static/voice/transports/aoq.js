// One conversation over AOQ: tracks of Media over QUIC in a WebTransport session, which a grant opens.

import { FrameOrder } from "../audio/frame_order.js";
import { OpusDecoder, OpusEncoder, hasOpus } from "../audio/opus_codec.js";
import { SAMPLE_RATE_HZ } from "../audio/capture.js";
import { SERVER } from "../events.js";
import { after } from "../pause.js";
import { GOES_ON_ELSEWHERE, TransportFailure } from "./failure.js";
import { openRelay, requestGrant } from "./relay.js";
import { SessionReport } from "./session_report.js";

const GREETING_TIMEOUT_MS = 3000;
const READY_EVERY_MS = 100;
const READY_TIMES = 10;
const GOODBYE_MS = 300; // for what was said last to leave
const QUALITY_EVERY_MS = 2000;
const LOOK_EVERY_MS = 250;
const SILENT_MS = 1500; // the server sends a frame at least every 400 ms
const EVENTS_PER_GROUP = 256;
const FRAME_MS = 20;
const READY = JSON.stringify({ type: "ready" });
const NEXT_RELAY = 1069;
const NEW_GRANT = [1064, 1066, 1068];
const LEFT = 1001;
const LOST = 1006;
const TIME_IS_UP = 4000;

/** Whether this browser can do it. */
export function hasAoq() {
  return "WebTransport" in window && hasOpus();
}

/**
 * Events: `event` (detail: one server event), `close` (detail {code, reason, wasOpen}), `quality` (detail {rttMs,
 * lossShare, playoutMs}, each null while unknown).
 */
export class AoqTransport extends EventTarget {
  #url;
  #query;
  #sound;
  #csrfToken;
  #patienceMs;
  #web = null; // the WebTransport session
  #moq = null;
  #data = null; // our track of events
  #group = null;
  #eventsInGroup = 0;
  #encoder = null;
  #decoder = null;
  #order = new FrameOrder();
  #report = null; // of a session that our server does not see
  #isClosed = false;
  #wasOpen = false;
  #ending = { code: LOST, reason: "" };
  #greeted = deferred(); // settled by the first event, or by a close before it
  #measuring = null;
  #watching = null;
  #arrivedAt = 0;
  #unplug = new AbortController();

  /**
   * `path`: where grants are given on this host; `query`: {model, time_zone}; `sound`: whose microphone is sent and whose
   * loudspeaker plays the replies; `csrfToken()` resolves to the token of this page;
   * `patienceMs`: how long a relay may take to be reached, if not as long as where other transports wait.
   */
  constructor(path, query, { sound, csrfToken, patienceMs }) {
    super();
    this.#query = query;
    this.#url = new URL(path, location.href);
    this.#url.search = new URLSearchParams(query).toString();
    this.#sound = sound;
    this.#csrfToken = csrfToken;
    this.#patienceMs = patienceMs;
  }

  get name() {
    return "AOQ";
  }

  /** Resolves when the server has said its first event; rejects with a TransportFailure. */
  async connect() {
    try {
      const library = import("../vendor/moq-net.js"); // fetched while the grant is asked for
      library.catch(() => {}); // told where it is awaited
      await this.#reach(library);
    } catch (error) {
      this.#end();
      throw error instanceof TransportFailure ? error : new TransportFailure("refused", error.message);
    }
    this.#wasOpen = true;
    this.#report?.connected();
    addEventListener("pagehide", () => this.#leave(), { signal: this.#unplug.signal });
    this.#measuring = setInterval(() => this.#measure(), QUALITY_EVERY_MS);
    this.#watching = setInterval(() => this.#watch(), LOOK_EVERY_MS);
  }

  /** Returns whether the event left. */
  send(event) {
    if (this.#isClosed || !this.#data) {
      return false;
    }
    if (this.#group === null || this.#eventsInGroup === EVENTS_PER_GROUP) {
      this.#group?.close();
      this.#group = this.#data.appendGroup();
      this.#eventsInGroup = 0;
    }
    this.#group.writeString(JSON.stringify(event));
    this.#eventsInGroup += 1;
    return true;
  }

  /** Send microphone samples on the audio track. Returns false: no event was sent. */
  sendAudio(pcm) {
    this.#encoder?.encode(pcm);
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

  /** Begin with one of the grant's relays; a grant that came too late is replaced once. */
  async #reach(library) {
    let failure = new TransportFailure("refused", "The grant names no relay.");
    for (let grants = 0; grants < 2; grants += 1) {
      const { grant, reportTo } = await requestGrant(this.#url, this.#csrfToken, this.#unplug.signal);
      this.#report?.ended(LOST); // of the grant before
      this.#report = reportTo && new SessionReport(reportTo, () => this.#expire());
      const places = grant.clientRelayEndpoints.map((relay, place) => ({ ...relay, order: relay.route_index ?? place }));
      for (const relay of places.sort((first, second) => first.order - second.order)) {
        try {
          await this.#begin(await openRelay(relay, grant, this.#query, this.#unplug.signal, this.#patienceMs), await library);
          return;
        } catch (error) {
          failure = error;
        }
        if (this.#isClosed || (failure.closeCode && failure.closeCode !== NEXT_RELAY)) {
          break;
        }
      }
      if (this.#isClosed || !NEW_GRANT.includes(failure.closeCode)) {
        break;
      }
    }
    throw failure;
  }

  async #begin(web, { Broadcast, Connection, Group, Path, Time }) {
    this.#web = web;
    this.#greeted = deferred();
    web.closed.then(
      ({ closeCode, reason }) => this.#lost(web, closeCode, reason),
      () => this.#lost(web, LOST, ""),
    );
    const opening = Connection.connect(new URL(location.href), { transport: web });
    opening.catch(() => {});
    this.#moq = await Promise.race([opening, this.#greeted.promise]);
    const mine = new Broadcast.Producer();
    this.#data = mine.createTrack("data", { priority: 255, latencyMax: 30000 });
    const audio = mine.createTrack("audio", { priority: 200, latencyMax: 1000 });
    this.#moq.publish(Path.from("client"), mine);
    const server = this.#moq.consume(Path.from("server"));
    const events = server.subscribe("data", { priority: 255, latencyMax: 30000 });
    const sound = server.subscribe("audio", { priority: 200, latencyMax: 1000 });
    this.#read(events);
    this.#decoder = new OpusDecoder((samples, rateHz) => this.#sound.playback.pushFrame(samples, rateHz));
    this.#sound.playback.followFrames(true);
    this.#listen(sound);
    this.#encoder = new OpusEncoder(SAMPLE_RATE_HZ, (number, payload) => {
      const group = new Group.Producer(number);
      group.writeFrame({ payload, timestamp: Time.Timestamp.fromMillis(number * FRAME_MS) });
      group.close();
      audio.writeGroup(group);
    });
    const patience = after(GREETING_TIMEOUT_MS).then(giveUp);
    patience.catch(() => {}); // told where it is awaited
    await Promise.race([Promise.all([events.info(), sound.info()]), this.#greeted.promise, patience]);
    this.#sayReady(this.#greeted.promise);
    await Promise.race([this.#greeted.promise, patience]);
  }

  /** The server writes nothing before it hears this: a subscription starts behind what was written earlier. */
  async #sayReady(greeted) {
    let isOver = false;
    const stop = () => {
      isOver = true;
    };
    greeted.then(stop, stop);
    for (let times = 0; times < READY_TIMES && !isOver; times += 1) {
      this.#data.writeString(READY); // each in a group of its own: the server may not have subscribed yet
      await after(READY_EVERY_MS);
    }
  }

  // ── What comes and what goes ─────────────────────────────────────────────────────────────────────────────────────

  async #read(track) {
    try {
      for (let group = await track.nextGroup(); group; group = await track.nextGroup()) {
        for (let text = await group.readString(); text !== undefined; text = await group.readString()) {
          this.#receive(JSON.parse(text));
        }
      }
    } catch {
      // The session is over, and `closed` says how.
    }
  }

  #receive(event) {
    this.#arrivedAt = performance.now();
    if (event.type === "close") {
      this.#ending = { code: event.code, reason: event.reason };
      setTimeout(() => this.#end(), GOODBYE_MS);
      return;
    }
    if (event.type === SERVER.SESSION_CLOSING) {
      this.#ending = { code: event.code, reason: event.reason };
    } else if (event.type === SERVER.SESSION_FINISHED) {
      this.#ending = { code: 1000, reason: "" };
    }
    this.#greeted.resolve();
    this.dispatchEvent(new CustomEvent("event", { detail: event }));
  }

  async #listen(track) {
    try {
      for (let group = await track.recvGroup(); group; group = await track.recvGroup()) {
        this.#hear(group);
      }
    } catch {
      // As above.
    }
  }

  async #hear(group) {
    this.#arrivedAt = performance.now();
    const frame = await group.readFrame().catch(() => undefined); // given up by its sender
    if (frame) {
      for (const payload of this.#order.push(group.sequence, frame.payload, performance.now())) {
        this.#decoder?.decode(payload);
      }
    }
  }

  // ── Keeping an eye on it, and ending it ──────────────────────────────────────────────────────────────────────────

  /** A network that was cut says nothing: QUIC itself would notice after half a minute. */
  #watch() {
    if (performance.now() - this.#arrivedAt > SILENT_MS && document.visibilityState !== "hidden") {
      this.#end();
    }
  }

  async #measure() {
    const stats = await this.#web.getStats?.().catch(() => null);
    if (!this.#isClosed) {
      const rttMs = stats?.smoothedRtt === undefined ? null : Math.round(stats.smoothedRtt);
      const playoutMs = rttMs === null ? null : Math.round(rttMs / 2 + this.#sound.playback.framesDelayMs);
      this.dispatchEvent(new CustomEvent("quality", { detail: { rttMs, lossShare: null, playoutMs } }));
    }
  }

  /** The page is being closed or left. */
  #leave() {
    this.#report?.ended(LEFT);
    this.#moq.close(); // and with it the session, without an error in the console
  }

  /** Our server counts a session as ended that another service still holds. */
  #expire() {
    this.#ending = { code: TIME_IS_UP, reason: "" };
    this.#end();
  }

  #lost(web, code, reason) {
    if (web !== this.#web) {
      return;
    }
    const failure = new TransportFailure("refused", `The relay closed with ${code}.`);
    this.#greeted.reject(Object.assign(failure, { closeCode: code }));
    if (this.#wasOpen) {
      if (this.#ending.code === LOST) {
        this.#ending = { code: code || LOST, reason };
      }
      this.#end();
    }
  }

  #end() {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    clearInterval(this.#measuring);
    clearInterval(this.#watching);
    this.#unplug.abort();
    this.#report?.ended(this.#ending.code);
    this.#greeted.reject(new TransportFailure("refused", "Closed before it was open."));
    this.#sound.playback?.followFrames(false);
    this.#encoder?.close();
    this.#decoder?.close();
    this.#encoder = this.#decoder = null;
    const [web, moq, isLost] = [this.#web, this.#moq, this.#ending.code === LOST];
    setTimeout(
      () => {
        moq?.close();
        web?.close(isLost ? { closeCode: GOES_ON_ELSEWHERE } : {});
      },
      this.#wasOpen ? GOODBYE_MS : 0, // after what is still on its way, such as the word that we are finished
    );
    this.dispatchEvent(new CustomEvent("close", { detail: { ...this.#ending, wasOpen: this.#wasOpen } }));
  }
}

/** A promise with its resolve and reject. A rejection that is not awaited raises no warning. */
function deferred() {
  const parts = /** @type {{promise: Promise<void>, resolve: () => void, reject: (error: Error) => void}} */ ({});
  parts.promise = new Promise((resolve, reject) => {
    Object.assign(parts, { resolve, reject });
  });
  parts.promise.catch(() => {});
  return parts;
}

function giveUp() {
  throw new TransportFailure("no_path", "The relay did not begin.");
}
