// The orb button, the row of buttons under it, the keys, and the line that says what happens now.

import { Welcome } from "./welcome.js";
import { byId } from "./dom.js";
import { t } from "../words.js";

const FACES = {
  idle: { icon: "mic", says: t("Tap to talk"), does: t("Start talking") },
  connecting: { icon: "link", says: t("Connecting…"), does: t("Stop connecting") },
  queued: { icon: "people", says: t("All lines are busy"), does: t("Stop waiting") },
  "your-turn": { icon: "bell", says: t("Your turn: tap to talk"), does: t("Take your turn") },
  listening: { icon: "ear", says: t("Listening"), does: t("End the conversation") },
  typing: { icon: "mic", says: t("Type a message, or tap to talk"), does: t("Turn on the microphone") },
  muted: { icon: "mic-off", says: t("Muted: tap or hold to speak"), does: t("Unmute the microphone") },
  "user-speaking": { icon: "user-voice", says: t("Hearing you"), does: t("End the conversation") },
  processing: { icon: "dots", says: t("Thinking"), does: t("Interrupt the assistant") },
  "ai-speaking": { icon: "voice", says: t("Speaking: tap to interrupt"), does: t("Interrupt the assistant") },
  reconnecting: { icon: "refresh", says: t("Connection lost, reconnecting…"), does: t("Reconnect now") },
  error: { icon: "alert", says: t("Not connected"), does: t("Try again") },
};
const ENDS = { queued: t("Stop waiting"), "your-turn": t("Not now"), reconnecting: t("Stop trying") };
const OUTAGES = {
  at_capacity: t("All lines are busy"),
  warming_up: t("The server is starting"),
  draining: t("The server is restarting"),
};
const WAITING = { microphone: t("Allow the microphone to go on"), engines: t("The server is starting…") };
const LIVE = new Set(["listening", "user-speaking", "processing", "ai-speaking"]);
const TAP_MS = 300; // a press that lasts longer is a hold
const GRACE_MS = 700; // a tap meant to interrupt must not end the conversation because the reply just ended

export class Controls {
  #session;
  #preferences;
  #orb = byId("orb");
  #icon = byId("orb-icon", SVGUseElement);
  #status = byId("status");
  #welcome = new Welcome();
  #mute = byId("mute");
  #end = byId("end");
  #hold = byId("push-to-talk");
  #interrupt = byId("interrupt", HTMLButtonElement);
  #isMuted = false;
  #heldSince = null; // muted, and heard while the circle or the space bar is held
  #releasedAt = -TAP_MS; // the click that follows means nothing
  #spokeUntil = 0;
  #ticking = null;

  constructor(session, preferences) {
    this.#session = session;
    this.#preferences = preferences;
    session.addEventListener("state", ({ detail }) => this.show(detail));
    for (const name of ["problem", "solved"]) {
      session.addEventListener(name, () => this.show(session.state)); // the microphone may have gone away, or come
    }
    session.addEventListener("retry", () => this.#say(session.state));
    session.addEventListener("waiting", ({ detail }) => {
      if (session.state === "connecting" || this.#isTyping(session.state)) {
        this.#status.textContent = WAITING[detail];
      }
    });
    preferences.addEventListener("change", () => {
      if (preferences.isPushToTalk) {
        this.#heldSince = null;
        this.#setMuted(false); // who is heard only while holding need not be muted
      }
      this.show(session.state);
    });
    this.#orb.addEventListener("click", () => this.#tapped());
    this.#orb.addEventListener("pointerdown", (event) => this.#pressed(event));
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
      this.#orb.addEventListener(type, () => this.#released());
    }
    this.#mute.addEventListener("click", () => this.#muteTapped());
    this.#hold.addEventListener("click", () => {
      preferences.isPushToTalk = !preferences.isPushToTalk;
      this.#orb.focus(); // the space bar is for talking now
    });
    this.#interrupt.addEventListener("click", () => session.interrupt());
    this.#end.addEventListener("click", () => {
      session.stop();
      this.#orb.focus();
    });
    window.addEventListener("keydown", (event) => this.#keyDown(event));
    window.addEventListener("keyup", (event) => this.#keyUp(event));
    window.addEventListener("blur", () => this.#released());
    this.#listenToComposer();
    this.show(session.state);
  }

  show(state) {
    const { icon, does } = this.#face(state);
    if (document.body.dataset.state === "ai-speaking" && state !== "ai-speaking") {
      this.#spokeUntil = performance.now();
    }
    document.body.dataset.state = state;
    document.body.toggleAttribute("data-muted", this.#isSilenced(state));
    this.#icon.setAttribute("href", `#icon-${icon}`);
    const isLive = LIVE.has(state);
    this.#orb.setAttribute("aria-label", isLive && this.#isHoldToTalk ? t("Hold to talk") : does);
    byId("controls").hidden = !isLive && !(state in ENDS);
    this.#end.lastElementChild.textContent = ENDS[state] ?? t("End");
    this.#interrupt.disabled = state !== "ai-speaking" && state !== "processing";
    this.#hold.setAttribute("aria-pressed", String(this.#preferences.isPushToTalk));
    this.#showMute();
    this.#welcome.show(this.#situation(state));
    this.#say(state);
  }

  #showMute() {
    const { hasMicrophone } = this.#session;
    this.#mute.hidden = this.#isHoldToTalk;
    this.#mute.toggleAttribute("data-on", this.#isMuted && hasMicrophone);
    this.#mute.lastElementChild.textContent = hasMicrophone ? (this.#isMuted ? t("Unmute") : t("Mute")) : t("Use mic");
    this.#mute.querySelector("use").setAttribute("href", this.#isMuted || !hasMicrophone ? "#icon-mic-off" : "#icon-mic");
  }

  /** Whether the person could be heard now, and is not because they muted the microphone. */
  #isSilenced(state) {
    const isHeard = !this.#isMuted || this.#heldSince !== null;
    return !isHeard && this.#session.hasMicrophone && (state === "listening" || state === "user-speaking");
  }

  /** Whether the conversation waits for the person, who has no microphone in it. */
  #isTyping(state) {
    return state === "listening" && !this.#session.hasMicrophone;
  }

  #face(state) {
    return FACES[this.#isSilenced(state) ? "muted" : this.#isTyping(state) ? "typing" : state];
  }

  /** What the words of welcome are to suit: the state, or how the person would speak now. */
  #situation(state) {
    if (this.#isSilenced(state)) {
      return "muted";
    }
    if (this.#isTyping(state)) {
      return "typing";
    }
    return state === "listening" && this.#isHoldToTalk ? "holding" : state;
  }

  get #isHoldToTalk() {
    return this.#preferences.isPushToTalk && this.#session.hasMicrophone;
  }

  #say(state) {
    clearInterval(this.#ticking);
    const retryAt = this.#session.retryAt;
    if ((state === "queued" || state === "reconnecting") && retryAt) {
      const tick = () => {
        const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
        const next = seconds > 0 ? t("trying again in {seconds} s", { seconds }) : t("trying again");
        this.#status.textContent = t("{reason}: {next}", { reason: state === "queued" ? this.#place : this.#outage, next });
      };
      tick();
      this.#ticking = setInterval(tick, 500);
      return;
    }
    this.#status.textContent = this.#words(state);
  }

  /** Where the person stands in the queue of a full server. */
  get #place() {
    const { position } = this.#session;
    return position ? t("Number {position} in the queue", { position }) : t("All lines are busy");
  }

  /** Why the conversation has not come back yet. */
  get #outage() {
    return OUTAGES[this.#session.outageReason] ?? (navigator.onLine ? t("Connection lost") : t("You are offline"));
  }

  #words(state) {
    if (this.#heldSince !== null && LIVE.has(state)) {
      return t("Hearing you: release to mute");
    }
    if (this.#isHoldToTalk && state === "user-speaking") {
      return t("Hearing you: release to send");
    }
    if (this.#isHoldToTalk && state === "listening") {
      return t("Hold the circle or the space bar");
    }
    return this.#face(state).says;
  }

  #tapped() {
    const { state } = this.#session;
    if (performance.now() - this.#releasedAt < TAP_MS) {
      return;
    }
    if (state === "idle" || state === "error") {
      this.#session.start();
    } else if (state === "your-turn") {
      this.#session.takeTurn();
    } else if (state === "reconnecting") {
      this.#session.hurry();
    } else if (state === "ai-speaking" || state === "processing") {
      this.#session.interrupt();
    } else if (this.#isSilenced(state)) {
      this.#muteTapped(); // by a key of a screen reader: a finger or the space bar is held first
    } else if (!this.#isHoldToTalk && performance.now() - this.#spokeUntil > GRACE_MS) {
      if (this.#session.hasMicrophone) {
        this.#session.stop();
      } else {
        this.#muteTapped();
      }
    }
  }

  #pressed(event) {
    if (event.button === 0 && LIVE.has(this.#session.state) && (this.#isHoldToTalk || this.#isSilenced(this.#session.state))) {
      this.#orb.setPointerCapture(event.pointerId);
      this.#holdToSpeak();
    }
  }

  /** From here on the person is heard: for a turn of push to talk, or while they hold although muted. */
  #holdToSpeak() {
    if (this.#isHoldToTalk) {
      this.#session.holdStart();
    } else {
      this.#heldSince = performance.now();
      this.#session.setMuted(false);
      this.show(this.#session.state);
    }
  }

  #released() {
    this.#session.holdEnd();
    if (this.#heldSince === null) {
      return;
    }
    const wasTap = performance.now() - this.#heldSince < TAP_MS;
    this.#heldSince = null;
    this.#releasedAt = performance.now();
    this.#setMuted(!wasTap);
    this.show(this.#session.state);
  }

  async #muteTapped() {
    const isOpen = this.#session.hasMicrophone;
    this.#setMuted(isOpen && !this.#isMuted);
    if (!isOpen) {
      await this.#session.openMicrophone();
    }
    this.show(this.#session.state);
  }

  #setMuted(isMuted) {
    this.#isMuted = isMuted;
    this.#session.setMuted(isMuted);
  }

  #keyDown(event) {
    if (event.key === "Escape" && LIVE.has(this.#session.state) && !document.querySelector("dialog[open]")) {
      this.#session.interrupt();
    } else if (event.code === "Space" && this.#canHold && this.#isFree(event.target)) {
      event.preventDefault();
      if (!event.repeat) {
        this.#holdToSpeak();
      }
    }
  }

  /** Whether the person may mean to be heard by holding: in an outage they are told that they are not. */
  get #canHold() {
    const { state } = this.#session;
    const isHearable = LIVE.has(state) || state === "reconnecting";
    return (this.#isHoldToTalk && isHearable) || this.#isSilenced(state) || this.#heldSince !== null;
  }

  #keyUp(event) {
    if (event.code === "Space" && (this.#session.isHolding || this.#heldSince !== null)) {
      event.preventDefault(); // or the released key would press the button in focus
      this.#released();
    }
  }

  /** Space belongs to whatever else is in focus: text, or a button other than the orb. */
  #isFree(target) {
    return target === this.#orb || !(target instanceof Element && target.closest("input, textarea, select, button, a, summary"));
  }

  #listenToComposer() {
    const input = byId("message", HTMLTextAreaElement);
    const composer = byId("composer", HTMLFormElement);
    const write = (text) => {
      input.value = text;
      fit(input);
    };
    const send = async (text) => {
      if (!(await this.#session.sendText(text)) && !input.value) {
        write(text); // nothing is lost when the server cannot be reached
      }
    };
    input.addEventListener("input", () => fit(input));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) {
        event.preventDefault();
        composer.requestSubmit();
      }
    });
    composer.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (text) {
        write("");
        send(text);
      }
    });
    for (const button of document.querySelectorAll(".try")) {
      button.addEventListener("click", () => send(button.textContent.trim()));
    }
  }
}

/** Whether a key belongs to an input method; Safari says it by 229 alone, for the Enter that ends a composition. */
function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/** As high as its words, up to what the style allows. */
function fit(area) {
  area.style.height = ""; // one line, whatever the placeholder would take
  if (area.value) {
    area.style.height = `${area.scrollHeight}px`;
  }
}
