// The page's wiring: one conversation, its session, its sound, and the views that show them.

import { Approvals } from "./approvals.js";
import { Captions } from "./views/captions.js";
import { SourceCard } from "./views/source.js";
import { Controls } from "./views/controls.js";
import { Conversation } from "./conversation.js";
import { Drawer } from "./views/drawer.js";
import { KeptConversation } from "./kept_conversation.js";
import { Levels } from "./views/levels.js";
import { Link } from "./views/link.js";
import { Notices } from "./views/notices.js";
import { Orb } from "./views/orb.js";
import { Panels } from "./views/panels.js";
import { Preferences } from "./preferences.js";
import { ReminderList } from "./views/reminder_list.js";
import { Settings } from "./views/settings.js";
import { Sound } from "./audio/sound.js";
import { Tabs } from "./tabs.js";
import { Transcript } from "./views/transcript.js";
import { VoiceSession } from "./session.js";
import { WakeLock } from "./wake_lock.js";
import { Waterfall } from "./views/waterfall.js";
import { byId } from "./views/dom.js";
import { serverConfig } from "./readiness.js";
import { duration } from "./words.js";
import { storageOf } from "./storage.js";

const { configUrl, loginUrl, captureWorklet, playbackWorklet, site } = document.body.dataset;

/** Within a page of another site, its talk button learns how the conversation is. */
function tellSite(state) {
  if (site) {
    window.parent.postMessage({ type: "voiceapp.state", state }, site);
  }
}

function start(config) {
  const preferences = /** @type {Preferences & import("./preferences.js").Choices} */ (new Preferences(storageOf("localStorage")));
  const conversation = new Conversation();
  const sound = new Sound({ capture: captureWorklet, playback: playbackWorklet });
  const tabs = new Tabs();
  const session = new VoiceSession({ sound, conversation, preferences, tabs, fetchConfig: askAgain });
  const kept = new KeptConversation(storageOf("sessionStorage"), conversation, {
    visitor: config.visitor,
    isActive: () => session.isActive,
  });
  const wakeLock = new WakeLock();
  const drawer = new Drawer();

  /** Whoever signed in since, in another tab, neither sees nor goes on with this conversation. */
  async function askAgain(waits) {
    const current = await serverConfig(configUrl, waits);
    if (!kept.isOf(current.visitor)) {
      location.reload();
    }
    return current;
  }

  const actions = {
    dismiss: () => {},
    retry: () => (session.isLive ? session.openMicrophone() : session.start()),
    hurry: () => session.hurry(),
    "talk-here": async () => {
      if ((await session.takeOver()) && byId("message", HTMLTextAreaElement).value) {
        byId("composer", HTMLFormElement).requestSubmit(); // what was to be sent when the other tab was in the way
      }
    },
    type: () => byId("message").focus(),
    login: () => (site ? open("/", "_blank") : location.assign(`${loginUrl}?next=${encodeURIComponent(location.pathname)}`)),
    microphone: () => byId("open-settings").click(),
    unblock: () => sound.resume(),
    allow: () => approvals.decide(true),
    deny: () => approvals.decide(false),
    "push-to-talk": () => {
      preferences.isPushToTalk = true;
    },
  };
  const notices = new Notices((action) => actions[action]());
  const approvals = new Approvals(notices, (id, isAllowed) => session.approve(id, isAllowed));
  conversation.addEventListener("approval", ({ detail: request }) => approvals.ask(request));

  const settings = new Settings(preferences, sound, config);
  new Panels(preferences);
  byId("open-about").addEventListener("click", () => byId("about-page", HTMLDialogElement).showModal());
  new Captions(conversation, preferences);
  new SourceCard(conversation);
  new ReminderList(conversation.reminders);
  new Waterfall(conversation);
  new Controls(session, preferences);
  new Link(session, config.session_limit_s);
  new Levels(session, sound);
  new Transcript(conversation, sound, {
    onNew: () => {
      session.stop();
      conversation.clear();
      byId("orb").focus();
    },
  });
  const orb = new Orb(() => (session.state === "ai-speaking" ? sound.playback?.level : sound.capture?.level) ?? 0);

  tellSite(session.state);
  session.addEventListener("state", ({ detail: state }) => {
    orb.state = state;
    tellSite(state);
    wakeLock.isOn = session.isActive;
    if (session.isActive && state !== "connecting" && state !== "reconnecting") {
      sound.setRecording(preferences.isRecording);
      byId("export-wav").hidden = !sound.recording;
    }
    if (state === "connecting") {
      notices.clear();
    } else if (state === "listening") {
      settings.listDevices(); // their names are known once the microphone was allowed
    }
  });
  session.addEventListener("problem", ({ detail }) => {
    const values = { length: duration(config.session_limit_s), left: duration(detail.leftS ?? 0) };
    notices.show({ ...detail, values });
  });
  navigator.mediaDevices?.addEventListener?.("devicechange", async () => {
    const devices = await navigator.mediaDevices.enumerateDevices();
    if (notices.has("microphone_missing", "microphone_lost") && devices.some(({ kind }) => kind === "audioinput")) {
      notices.clear();
      notices.show({ code: "microphone_found", message: "" });
    }
  });
  session.addEventListener("solved", ({ detail }) => (detail === "approval" ? approvals.clear() : notices.remove(detail)));
  session.addEventListener("overheard", ({ detail }) => {
    byId("overheard").hidden = !detail;
  });
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
  const forget = () => {
    kept.forget();
    conversation.clear();
  };
  document.querySelector(".sign-out")?.addEventListener("submit", () => {
    forget();
    tabs.signOut();
  });
  tabs.addEventListener("signed-out", () => {
    session.stop();
    forget();
  });
  if (kept.restore()) {
    notices.show({ code: "reloaded", message: "" });
  }
  const [obstacle] = config.reasons;
  if (obstacle && !["warming_up", "at_capacity"].includes(obstacle.code)) {
    notices.show({ code: obstacle.code, message: "", reasons: config.reasons });
  }
  document.body.dataset.loaded = "yes";
}

async function main() {
  if (typeof AudioWorkletNode === "undefined" && window.isSecureContext) {
    new Notices(() => {}).show({ code: "unsupported", message: "" });
    return;
  }
  try {
    start(await serverConfig(configUrl));
  } catch (error) {
    if (!error.code) {
      throw error;
    }
    const notices = new Notices((action) => (action === "login" ? location.assign(loginUrl) : location.reload()));
    notices.show({ code: error.code, message: "" });
  }
}

main();
