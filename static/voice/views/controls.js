// The orb button, the row of buttons under it, the keys, and the line that says what happens now.

import { Welcome } from "./welcome.js";
import { byId } from "./dom.js";

const FACES = {
  idle: { icon: "mic", says: "Tap to talk", does: "Start talking" },
  connecting: { icon: "link", says: "Connecting…", does: "Stop connecting" },
  queued: { icon: "people", says: "All lines are busy", does: "Stop waiting" },
  "your-turn": { icon: "bell", says: "Your turn: tap to talk", does: "Take your turn" },
  listening: { icon: "ear", says: "Listening", does: "End the conversation" },
  typing: { icon: "mic", says: "Type a message, or tap to talk", does: "Turn on the microphone" },
  muted: { icon: "mic-off", says: "Muted: tap to unmute", does: "Unmute the microphone" },
  "user-speaking": { icon: "user-voice", says: "Hearing you", does: "End the conversation" },
  processing: { icon: "dots", says: "Thinking", does: "Interrupt the assistant" },
  "ai-speaking": { icon: "voice", says: "Speaking: tap to interrupt", does: "Interrupt the assistant" },
  reconnecting: { icon: "refresh", says: "Connection lost, reconnecting…", does: "Reconnect now" },
  error: { icon: "alert", says: "Not connected", does: "Try again" },
};
const ENDS = { queued: "Stop waiting", "your-turn": "Not now", reconnecting: "Stop trying" };
const OUTAGES = {
  at_capacity: "All lines are busy",
  warming_up: "The server is starting",
  draining: "The server is restarting",
};
const WAITING = { microphone: "Allow the microphone to go on", engines: "The server is starting…" };
const LIVE = new Set(["listening", "user-speaking", "processing", "ai-speaking"]);
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
        this.#setMuted(false); // who is heard only while holding need not be muted
      }
      this.show(session.state);
    });
    this.#orb.addEventListener("click", () => this.#tapped());
    this.#orb.addEventListener("pointerdown", (event) => this.#pressed(event));
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
      this.#orb.addEventListener(type, () => session.holdEnd());
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
    window.addEventListener("blur", () => session.holdEnd());
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
    this.#orb.setAttribute("aria-label", isLive && this.#isHoldToTalk ? "Hold to talk" : does);
    byId("controls").hidden = !isLive && !(state in ENDS);
    this.#end.lastElementChild.textContent = ENDS[state] ?? "End";
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
    this.#mute.lastElementChild.textContent = hasMicrophone ? (this.#isMuted ? "Unmute" : "Mute") : "Use mic";
    this.#mute.querySelector("use").setAttribute("href", this.#isMuted || !hasMicrophone ? "#icon-mic-off" : "#icon-mic");
  }

  /** Whether the person could be heard now, and is not because they muted the microphone. */
  #isSilenced(state) {
    return this.#isMuted && this.#session.hasMicrophone && (state === "listening" || state === "user-speaking");
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
        const next = seconds > 0 ? `trying again in ${seconds} s` : "trying again";
        this.#status.textContent = `${state === "queued" ? "All lines are busy" : this.#outage}: ${next}`;
      };
      tick();
      this.#ticking = setInterval(tick, 500);
      return;
    }
    this.#status.textContent = this.#words(state);
  }

  /** Why the conversation has not come back yet. */
  get #outage() {
    return OUTAGES[this.#session.outageReason] ?? (navigator.onLine ? "Connection lost" : "You are offline");
  }

  #words(state) {
    if (this.#isHoldToTalk && state === "user-speaking") {
      return "Hearing you: release to send";
    }
    if (this.#isHoldToTalk && state === "listening") {
      return "Hold the circle or the space bar";
    }
    return this.#face(state).says;
  }

  #tapped() {
    const { state } = this.#session;
    if (state === "idle" || state === "error") {
      this.#session.start();
    } else if (state === "your-turn") {
      this.#session.takeTurn();
    } else if (state === "reconnecting") {
      this.#session.hurry();
    } else if (state === "ai-speaking" || state === "processing") {
      this.#session.interrupt();
    } else if (this.#isSilenced(state)) {
      this.#muteTapped();
    } else if (!this.#isHoldToTalk && performance.now() - this.#spokeUntil > GRACE_MS) {
      if (this.#session.hasMicrophone) {
        this.#session.stop();
      } else {
        this.#muteTapped();
      }
    }
  }

  #pressed(event) {
    if (this.#isHoldToTalk && LIVE.has(this.#session.state) && event.button === 0) {
      this.#orb.setPointerCapture(event.pointerId);
      this.#session.holdStart();
    }
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
    } else if (event.code === "Space" && this.#isHoldToTalk && this.#isHearable && this.#isFree(event.target)) {
      event.preventDefault();
      if (!event.repeat) {
        this.#session.holdStart();
      }
    }
  }

  /** Whether the person may mean to be heard: in an outage they are told that they are not. */
  get #isHearable() {
    return LIVE.has(this.#session.state) || this.#session.state === "reconnecting";
  }

  #keyUp(event) {
    if (event.code === "Space" && this.#session.isHolding) {
      event.preventDefault(); // or the released key would press the button in focus
      this.#session.holdEnd();
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
