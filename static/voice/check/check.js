// The connection check: what a conversation needs, tried one by one, and what a visitor can do where it fails.

import { FRAME_SAMPLES } from "../audio/capture.js";
import { SilentPlayback } from "../audio/playback.js";
import { floatFromInt16, loudness, meterLevel } from "../audio/pcm.js";
import { Sound } from "../audio/sound.js";
import { SERVER } from "../events.js";
import { NOTICES } from "../notices.js";
import { after } from "../pause.js";
import { Preferences } from "../preferences.js";
import { Readiness, problem, serverConfig } from "../readiness.js";
import { Resumption } from "../resumption.js";
import { storageOf } from "../storage.js";
import { hasAoq } from "../transports/aoq.js";
import { makeTransport } from "../transports/choice.js";
import { closedEarly } from "../transports/failure.js";
import { byId, make } from "../views/dom.js";
import { explained } from "../views/notices.js";
import { seconds, t } from "../words.js";
import { TONE_RATE_HZ, decibels, echoDb, tone } from "./tone.js";

const LISTENS_FRAMES = 156; // of 32 ms: five seconds
const FEWEST_FRAMES = 32;
const LOUD = 0.006; // -45 dB
const LOUD_FRAMES = 10;
const SILENT = 0.0005; // -66 dB
const ECHO_FRAMES = 16; // after the tone: what a wireless speaker plays late
const NO_FRAMES_MS = 15000; // by then a microphone that gives nothing is believed to be silent
const LOUD_ECHO_DB = -30;
const GREETING_MS = 10000;
const RESUMABLE_MS = 1000; // the server says so right after its greeting, or not at all
const RELAY_MS = 5000; // a far one is worth knowing
const ICE_MS = 8000;
const NOT_OFFERED = t("This server does not offer it. Conversations take another way. If the sound stutters, tell the operator of this server.");
const STATES = {
  waiting: t("Not checked yet"),
  busy: t("Checking…"),
  ok: t("Works"),
  off: t("Not used"),
  note: t("Needs attention"),
  failed: t("Does not work"),
};

/** One thing that is checked; screen readers read it out when it is known. */
class Line {
  #place;

  constructor(id) {
    this.#place = byId(id);
  }

  /** `mend`: what to do, a sentence or an element. */
  show(state, detail = "", mend = /** @type {string | Node} */ ("")) {
    this.#place.dataset.state = state;
    this.#part("status").setAttribute("aria-busy", String(state === "busy" && !mend));
    this.#part("state").textContent = STATES[state];
    this.#part("detail").textContent = detail;
    this.#part("mend").replaceChildren(...(mend ? [typeof mend === "string" ? make("p", "", mend) : mend] : []));
  }

  get text() {
    const words = ["state", "detail", "mend"].map((part) => this.#part(part).textContent.trim());
    return `${this.#place.querySelector("h2").textContent}: ${words.filter((each) => each).join(". ").replaceAll("..", ".")}`;
  }

  #part(name) {
    return this.#place.querySelector(name === "status" ? "[role=status]" : `.check-${name}`);
  }
}

const ids = ["address", "server", "microphone", "speaker", "echo", "websocket", "webrtc", "aoq", "stun", "turn"];
const lines = Object.fromEntries(ids.map((id) => [id, new Line(id)]));
const { configUrl, captureWorklet, playbackWorklet } = document.body.dataset;
const preferences = /** @type {Preferences & import("../preferences.js").Choices} */ (new Preferences(storageOf("localStorage")));
const sound = new Sound({ capture: captureWorklet, playback: playbackWorklet });
const start = byId("start", HTMLButtonElement);
const copy = byId("copy", HTMLButtonElement);

async function check() {
  if (document.body.dataset.state === "busy") {
    return;
  }
  start.setAttribute("aria-disabled", "true"); // one that is disabled would lose the focus
  document.body.dataset.state = "busy";
  for (const line of Object.values(lines)) {
    line.show("busy");
  }
  lines.address.show(...(window.isSecureContext ? ["ok"] : ["failed", "", NOTICES.insecure.text]));
  await Promise.all([checkSound(), checkWays()]);
  start.removeAttribute("aria-disabled");
  copy.disabled = false;
  start.textContent = t("Check again");
  document.body.dataset.state = "done";
}

// ── Sound ────────────────────────────────────────────────────────────────────────────────────────────────────────────

async function checkSound() {
  try {
    await sound.open();
    await sound.setSpeaker(preferences.speaker);
    const before = await checkMicrophone();
    await checkTone(before);
  } catch {
    const notice = "AudioWorkletNode" in window ? NOTICES.unreachable : NOTICES.unsupported; // its module is the server's
    for (const name of ["microphone", "speaker", "echo"]) {
      lines[name].show("failed", "", notice.text);
    }
  } finally {
    sound.capture?.close();
  }
}

/** What the microphone heard, or null where it did not open. */
async function checkMicrophone() {
  const { microphone } = lines;
  try {
    await sound.capture.open(preferences.microphone);
  } catch (error) {
    microphone.show("failed", "", (NOTICES[error.code] ?? NOTICES.microphone_busy).text);
    return null;
  }
  const meter = make("meter", "");
  meter.setAttribute("aria-label", t("Level"));
  microphone.show("busy", t("Say something."), meter);
  let loud = 0;
  let loudest = 0;
  const frames = await listen((pcm, count) => {
    const level = loudness(floatFromInt16(pcm));
    meter.value = meterLevel(level);
    loudest = Math.max(loudest, level);
    loud += Number(level > LOUD);
    return count >= LISTENS_FRAMES || (count >= FEWEST_FRAMES && loud >= LOUD_FRAMES);
  });
  if (loudest > SILENT) {
    microphone.show("ok", `${Math.round(decibels(loudest))} dB`);
  } else {
    microphone.show("failed", t("It is open, but nothing was heard."), t("Speak during the check. If that does not help, unmute the microphone on the device and in the system settings, or choose another one in Settings."));
  }
  return frames;
}

/** The tone is heard by the microphone, or by the person. */
async function checkTone(before) {
  const { speaker, echo } = lines;
  for (let answer = "again"; answer === "again"; ) {
    speaker.show("busy", t("A tone is played."));
    const during = [];
    const stop = before && onFrame((pcm) => during.push(pcm));
    await sound.replay([tone()], TONE_RATE_HZ);
    if (before) {
      await listen((_, count) => count >= ECHO_FRAMES);
      stop();
    }
    const heard = before && echoDb(before, during);
    if (heard !== null) {
      speaker.show("ok", t("The microphone heard the tone."));
      const isLoud = heard > LOUD_ECHO_DB;
      echo.show(isLoud ? "note" : "ok", `${heard} dB`, isLoud ? NOTICES.echo.text : "");
      return;
    }
    answer = await ask(speaker);
    if (answer === "yes") {
      speaker.show("ok", t("You heard the tone."));
      echo.show(...(before ? ["ok", t("The microphone does not hear the speaker.")] : ["waiting"]));
    } else if (answer === "no") {
      speaker.show("failed", "", t("Turn the volume up, and see whether headphones or another device get the sound. You can choose another speaker in Settings."));
      echo.show("waiting");
    }
  }
}

function ask(line) {
  return new Promise((resolve) => {
    const labels = { yes: t("Yes"), no: t("No"), again: t("Play it again") };
    const buttons = Object.entries(labels).map(([answer, label]) => {
      const button = make("button", "button", label);
      button.type = "button";
      button.addEventListener("click", () => {
        start.focus(); // these buttons go
        resolve(answer);
      });
      return button;
    });
    line.show("busy", t("Did you hear the tone?"), make("div", "check-answers", ...buttons));
  });
}

/** Returns what ends it. */
function onFrame(take) {
  const unplug = new AbortController();
  sound.capture.addEventListener("frame", ({ detail }) => take(detail.pcm), { signal: unplug.signal });
  return () => unplug.abort();
}

/** Frames of the microphone until `isEnough(pcm, count)`, or until it is clear that there are none. */
function listen(isEnough) {
  return new Promise((resolve) => {
    const frames = [];
    const end = () => {
      clearTimeout(patience);
      stop();
      resolve(frames);
    };
    const patience = setTimeout(end, NO_FRAMES_MS);
    const stop = onFrame((pcm) => {
      frames.push(pcm);
      if (pcm.length === FRAME_SAMPLES && isEnough(pcm, frames.length)) {
        end();
      }
    });
  });
}

// ── The ways to the server ───────────────────────────────────────────────────────────────────────────────────────────

async function checkWays() {
  const readiness = new Readiness((waits) => serverConfig(configUrl, waits));
  const obstacle = await readiness.obstacle();
  const ways = [["websocket", "WebSocket"], ["webrtc", "WebRTC"], ["aoq", "AOQ"]];
  if (obstacle) {
    lines.server.show("failed", "", explained(obstacle));
    for (const name of [...ways.map(([id]) => id), "stun", "turn"]) {
      lines[name].show("waiting", t("Not tried, because no conversation can begin now."));
    }
    return;
  }
  lines.server.show("ok", t("A conversation can begin."));
  const { models, default_model: model, ice_servers: servers } = readiness.config;
  const { transports } = models.find(({ name }) => name === model);
  const can = { WebSocket: true, WebRTC: "RTCPeerConnection" in window, AOQ: hasAoq() };
  const session = new TriedSession(readiness, model);
  for (const [id, name] of ways) {
    if (!transports.includes(id)) {
      lines[id].show("off", NOT_OFFERED);
    } else if (can[name]) {
      await checkWay(lines[id], name, session);
    } else {
      lines[id].show("off", t("This browser cannot do it. Conversations take another way."));
    }
  }
  session.end();
  await Promise.all(["stun", "turn"].map((kind) => checkIce(kind, transports.includes("webrtc") ? servers : [])));
}

async function checkWay(line, name, session) {
  const begun = performance.now();
  const failure = await session.moveTo(name);
  if (!failure) {
    line.show("ok", t("It answered in {time}.", { time: seconds(performance.now() - begun, 2) }));
  } else if (name === "WebSocket" && !failure.serverMessage) {
    line.show("failed", "", t("Your network, a VPN or a browser extension blocks WebSockets. Switch these off, or try another network. If it fails everywhere, tell the operator of this server."));
  } else if (failure.kind === "no_path") {
    line.show("failed", "", t("Your network does not let {name} through, which uses UDP. Conversations take another way. If the sound stutters, switch off VPN and proxy, or try another network.", { name }));
  } else {
    line.show("failed", "", explained(problem(name === "WebRTC" ? "no_webrtc" : "refused", failure.serverMessage)));
  }
}

/** One session that goes on over one transport after the other, so that the check counts as one conversation. */
class TriedSession {
  #readiness;
  #model;
  #resumption = new Resumption();
  #transport = null;

  constructor(readiness, model) {
    this.#readiness = readiness;
    this.#model = model;
  }

  /** Go on over this transport, or begin. Resolves to null, or to why it failed. */
  async moveTo(name) {
    const silence = { playback: new SilentPlayback(), capture: Object.assign(new EventTarget(), { track: null }) };
    const query = { model: this.#model, ...this.#resumption.query };
    const transport = makeTransport(name, query, { readiness: this.#readiness, sound: silence, relayPatienceMs: RELAY_MS });
    const greeted = this.#greeted(transport);
    const failure = (await transport.connect().then(() => null, (error) => error)) ?? (await greeted);
    if (failure) {
      transport.abandon();
    } else {
      this.#transport?.abandon();
      this.#transport = transport;
      this.#resumption.hold();
    }
    return failure;
  }

  end() {
    this.#transport?.close();
  }

  /** Resolves to null when the server has greeted us, or to why it did not. */
  #greeted(transport) {
    return new Promise((resolve) => {
      let closing = null;
      const silent = () => resolve(closedEarly(closing ?? { reason: "" }));
      setTimeout(silent, GREETING_MS);
      transport.addEventListener("close", silent);
      transport.addEventListener("event", ({ detail }) => {
        this.#resumption.received(detail);
        if (detail.type === SERVER.SESSION_RESUMED) {
          this.#resumption.resume(detail.received);
          resolve(null);
        } else if (detail.type === SERVER.SESSION_RESUMABLE) {
          resolve(null);
        } else if (detail.type === SERVER.SESSION_CREATED) {
          setTimeout(resolve, RESUMABLE_MS, null);
        } else if (detail.type === SERVER.SESSION_CLOSING) {
          closing = detail;
        }
      });
    });
  }
}

/** Whether the STUN servers answer, or the TURN relays let us in. */
async function checkIce(kind, servers) {
  const [type, prefix] = kind === "stun" ? ["srflx", "stun"] : ["relay", "turn"];
  const asked = servers.filter(({ urls }) => urls[0].startsWith(prefix));
  const line = lines[kind];
  if (asked.length === 0) {
    line.show("off", t("This server needs none, or its operator has set up none."));
    return;
  }
  const begun = performance.now();
  const peer = new RTCPeerConnection({ iceServers: asked, iceTransportPolicy: type === "relay" ? "relay" : "all" });
  const failed = new Set();
  const isFound = await new Promise((resolve) => {
    peer.addEventListener("icecandidateerror", (event) => failed.add(event.url));
    peer.addEventListener("icecandidate", ({ candidate }) => {
      if (candidate?.type === type) {
        resolve(true);
      } else if (!candidate) {
        resolve(type === "srflx" && failed.size === 0); // a browser with a public address tells of no other one
      }
    });
    peer.createDataChannel("check");
    peer.setLocalDescription().catch(() => resolve(false));
    after(ICE_MS, false).then(resolve);
  });
  peer.close();
  if (isFound) {
    line.show("ok", t("It answered in {time}.", { time: seconds(performance.now() - begun, 2) }));
  } else {
    const server = asked.flatMap(({ urls }) => urls).join(", ");
    line.show("failed", "", t("{server} does not answer. If WebRTC does not work either, try another network; if it fails everywhere, tell the operator of this server.", { server }));
  }
}

start.addEventListener("click", check);
copy.addEventListener("click", async () => {
  const about = [document.title, `${location.origin}, ${new Date().toISOString()}`, navigator.userAgent];
  try {
    await navigator.clipboard.writeText([...about, ...Object.values(lines).map((line) => line.text)].join("\n"));
    copy.textContent = t("Copied");
  } catch {
    getSelection().selectAllChildren(byId("checks")); // without https, the clipboard is closed to pages
    copy.textContent = t("Selected: press Ctrl+C");
  }
});
document.body.dataset.loaded = "yes";
