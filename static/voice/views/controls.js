// The orb button, the row of buttons under it, the keys, and the line that says what happens now.

import { byId } from "./dom.js";

const FACES = {
  idle: { icon: "mic", says: "Tap to talk", does: "Start talking" },
  connecting: { icon: "link", says: "Connecting…", does: "Stop connecting" },
  queued: { icon: "people", says: "All lines are busy", does: "Leave the line" },
  "your-turn": { icon: "bell", says: "Your turn: tap to talk", does: "Take your turn" },
  listening: { icon: "ear", says: "Listening", does: "End the conversation" },
  "user-speaking": { icon: "user-voice", says: "Hearing you", does: "End the conversation" },
  processing: { icon: "dots", says: "Thinking", does: "Interrupt the assistant" },
  "ai-speaking": { icon: "voice", says: "Speaking: tap to interrupt", does: "Interrupt the assistant" },
  reconnecting: { icon: "refresh", says: "Connection lost, coming back…", does: "Reconnect now" },
  error: { icon: "alert", says: "Not connected", does: "Try again" },
};
const WAITING = { microphone: "Allow the microphone to go on", engines: "The engines are being loaded…" };
const LIVE = new Set(["listening", "user-speaking", "processing", "ai-speaking"]);
const GRACE_MS = 700; // a tap meant to interrupt must not end the conversation because the reply just ended

export class Controls {
  #session;
  #preferences;
  #orb = byId("orb");
  #icon = byId("orb-icon");
  #status = byId("status");
  #mute = byId("mute");
  #hold = byId("push-to-talk");
  #interrupt = byId("interrupt");
  #isMuted = false;
  #spokeUntil = 0;
  #ticking = null;

  constructor(session, preferences) {
    this.#session = session;
    this.#preferences = preferences;
    session.addEventListener("state", ({ detail }) => this.show(detail));
    session.addEventListener("waiting", ({ detail }) => {
      if (session.state === "connecting") {
        this.#status.textContent = WAITING[detail];
      }
    });
    preferences.addEventListener("change", () => this.show(session.state));
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
    byId("end").addEventListener("click", () => {
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
    const { icon } = FACES[state];
    if (document.body.dataset.state === "ai-speaking" && state !== "ai-speaking") {
      this.#spokeUntil = performance.now();
    }
    document.body.dataset.state = state;
    this.#icon.setAttribute("href", `#icon-${icon}`);
    this.#orb.setAttribute("aria-label", this.#does(state));
    const isLive = LIVE.has(state);
    byId("controls").hidden = !isLive && state !== "reconnecting";
    this.#interrupt.disabled = state !== "ai-speaking" && state !== "processing";
    const hasMicrophone = this.#session.hasMicrophone;
    this.#hold.setAttribute("aria-pressed", String(this.#preferences.isPushToTalk));
    this.#mute.setAttribute("aria-pressed", String(this.#isMuted && hasMicrophone));
    this.#mute.lastElementChild.textContent = hasMicrophone ? (this.#isMuted ? "Muted" : "Mute") : "Use mic";
    this.#mute.querySelector("use").setAttribute("href", this.#isMuted || !hasMicrophone ? "#icon-mic-off" : "#icon-mic");
    this.#say(state);
  }

  #does(state) {
    return LIVE.has(state) && this.#isHoldToTalk ? "Hold to talk" : FACES[state].does;
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
        this.#status.textContent = state === "queued" ? `All lines are busy: ${next}` : `Connection lost: ${next}`;
      };
      tick();
      this.#ticking = setInterval(tick, 500);
      return;
    }
    this.#status.textContent = this.#words(state);
  }

  #words(state) {
    if (state !== "listening") {
      return state === "user-speaking" && this.#isHoldToTalk ? "Hearing you: release to send" : FACES[state].says;
    }
    if (!this.#session.hasMicrophone) {
      return "Ready: type a message";
    }
    if (this.#isHoldToTalk) {
      return "Hold the circle or the space bar";
    }
    return this.#isMuted ? "Muted" : "Listening";
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
    } else if (!this.#isHoldToTalk && performance.now() - this.#spokeUntil > GRACE_MS) {
      this.#session.stop();
    }
  }

  #pressed(event) {
    if (this.#isHoldToTalk && LIVE.has(this.#session.state) && event.button === 0) {
      this.#orb.setPointerCapture(event.pointerId);
      this.#session.holdStart();
    }
  }

  async #muteTapped() {
    if (!this.#session.hasMicrophone) {
      await this.#session.openMicrophone();
    } else {
      this.#isMuted = !this.#isMuted;
      this.#session.setMuted(this.#isMuted);
    }
    this.show(this.#session.state);
  }

  #keyDown(event) {
    if (event.key === "Escape" && LIVE.has(this.#session.state) && !byId("settings").open) {
      this.#session.interrupt();
    } else if (event.code === "Space" && this.#isHoldToTalk && LIVE.has(this.#session.state) && this.#isFree(event.target)) {
      event.preventDefault();
      if (!event.repeat) {
        this.#session.holdStart();
      }
    }
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
    const input = byId("message");
    const send = async (text) => {
      if (!(await this.#session.sendText(text)) && !input.value) {
        input.value = text; // nothing is lost when the server cannot be reached
      }
    };
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (text) {
        input.value = "";
        send(text);
      }
    });
    for (const button of document.querySelectorAll(".try")) {
      button.addEventListener("click", () => send(button.textContent.trim()));
    }
  }
}
