// The page's wiring: one conversation, its session, its sound, and the views that show them.

import { Captions } from "./views/captions.js";
import { Cards } from "./views/cards.js";
import { Controls } from "./views/controls.js";
import { Conversation } from "./conversation.js";
import { Drawer } from "./views/drawer.js";
import { Link } from "./views/link.js";
import { Orb } from "./views/orb.js";
import { Panels } from "./views/panels.js";
import { Preferences } from "./preferences.js";
import { Settings } from "./views/settings.js";
import { Sound } from "./audio/sound.js";
import { Transcript } from "./views/transcript.js";
import { VoiceSession } from "./session.js";
import { WakeLock } from "./wake_lock.js";
import { Waterfall } from "./views/waterfall.js";
import { byId } from "./views/dom.js";

const { configUrl, loginUrl, captureWorklet, playbackWorklet } = document.body.dataset;

/** What the server offers now; asking also renews the cookie by which the socket knows us. */
async function fetchConfig() {
  const response = await fetch(configUrl, { cache: "no-store", headers: { Accept: "application/json" } });
  if (!response.ok) {
    const error = new Error(`The server answered ${response.status}.`);
    error.code = response.status === 401 ? "signed_out" : "unreachable";
    throw error;
  }
  return response.json();
}

function start(config) {
  const preferences = new Preferences(localStorage);
  const conversation = new Conversation();
  const sound = new Sound({ capture: captureWorklet, playback: playbackWorklet });
  const session = new VoiceSession({ sound, conversation, preferences, fetchConfig });
  const wakeLock = new WakeLock();
  const drawer = new Drawer();

  const actions = {
    dismiss: () => {},
    retry: () => session.start(),
    type: () => byId("message").focus(),
    login: () => location.assign(`${loginUrl}?next=${encodeURIComponent(location.pathname)}`),
    microphone: () => byId("open-settings").click(),
    unblock: () => sound.resume(),
    "push-to-talk": () => {
      preferences.isPushToTalk = true;
    },
  };
  const cards = new Cards((action) => actions[action]());

  new Settings(preferences, sound, config);
  new Panels(preferences);
  new Captions(conversation);
  new Waterfall(conversation);
  new Controls(session, preferences);
  new Link(session, config.session_limit_s);
  new Transcript(conversation, sound, {
    onNew: () => {
      session.stop();
      conversation.clear();
      byId("orb").focus();
    },
  });
  const orb = new Orb(() => (session.state === "ai-speaking" ? sound.playback?.level : sound.capture?.level) ?? 0);

  session.addEventListener("state", ({ detail: state }) => {
    orb.state = state;
    wakeLock.isOn = session.isActive;
    if (session.isActive && state !== "connecting" && state !== "reconnecting") {
      sound.setRecording(preferences.isRecording);
      byId("export-wav").hidden = !sound.recording;
    }
    if (state === "connecting") {
      cards.clear();
    }
  });
  session.addEventListener("problem", ({ detail }) => cards.show(detail));
  session.addEventListener("solved", ({ detail }) => cards.remove(detail));
  session.addEventListener("traffic", ({ detail }) => drawer.add(detail));
  preferences.addEventListener("change", ({ detail: name }) => {
    if (name === "model") {
      session.restart();
    } else if (name === "microphone" && session.hasMicrophone) {
      session.openMicrophone();
    } else if (name === "speaker") {
      sound.setSpeaker(preferences.speaker);
    } else {
      session.applyPreferences(name);
    }
  });
  sound.setSpeaker(preferences.speaker);
  const [obstacle] = config.reasons;
  if (obstacle && !["warming_up", "at_capacity"].includes(obstacle.code)) {
    cards.show({ code: obstacle.code, message: "", reasons: config.reasons });
  }
  document.body.dataset.loaded = "yes";
}

async function main() {
  if (typeof AudioWorkletNode === "undefined" && window.isSecureContext) {
    new Cards(() => {}).show({ code: "unsupported", message: "" });
    return;
  }
  try {
    start(await fetchConfig());
  } catch (error) {
    if (!error.code && !(error instanceof TypeError)) {
      throw error;
    }
    const cards = new Cards((action) => (action === "login" ? location.assign(loginUrl) : location.reload()));
    cards.show({ code: error.code ?? "unreachable", message: "" });
  }
}

main();
