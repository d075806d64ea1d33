// Beside the list of voices: what the chosen one sounds like.

import { byId } from "./dom.js";
import { t } from "../words.js";

const PLAY = t("Play a sample");
const STOP = t("Stop");
const FAILED = t("The sample cannot be played now.");

export class VoiceSample {
  #button = byId("voice-sample", HTMLButtonElement);
  #note = byId("voice-sample-note");
  #voice = byId("voice", HTMLSelectElement);
  #audio = byId("voice-sample-sound", HTMLAudioElement);
  #addressOf;
  #preferences;

  /** `addressOf(name)`: of the sample of a voice. */
  constructor(addressOf, preferences) {
    this.#addressOf = addressOf;
    this.#preferences = preferences;
    this.#button.addEventListener("click", () => (this.#isPlaying ? this.#stop() : this.#play()));
    this.#voice.addEventListener("change", () => this.#stop());
    this.#button.hidden = this.#voice.value === ""; // the server's default is one that it does not name
    byId("settings", HTMLDialogElement).addEventListener("close", () => this.#stop());
    this.#audio.addEventListener("ended", () => this.#stop());
  }

  get #isPlaying() {
    return this.#button.textContent === STOP;
  }

  async #play() {
    this.#note.textContent = "";
    this.#button.textContent = STOP;
    const source = this.#addressOf(encodeURIComponent(this.#voice.value));
    this.#audio.src = source;
    try {
      await this.#audio.setSinkId?.(this.#preferences.speaker).catch(() => {}); // that device is gone: the system's own
      if (this.#isPlaying) {
        await this.#audio.play();
      }
    } catch (error) {
      if (error.name !== "AbortError") { // stopped before it began
        this.#stop();
        this.#note.textContent = FAILED;
      }
    }
  }

  #stop() {
    this.#note.textContent = "";
    this.#audio.pause();
    this.#button.textContent = PLAY;
  }
}
