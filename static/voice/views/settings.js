// Settings: model, voice, instructions, devices. Each change holds at once.

import { byId, make } from "./dom.js";

const TRANSPORTS = [
  ["automatic", "Automatic"],
  ["webrtc", "WebRTC"],
  ["websocket", "WebSocket"],
];

export class Settings {
  #dialog = byId("settings");
  #preferences;
  #sound;

  /** `config` is what /voice/config said. */
  constructor(preferences, sound, config) {
    this.#preferences = preferences;
    this.#sound = sound;
    this.#fill("model", config.models.map(({ name, title }) => [name, title]), config.default_model);
    this.#fill("voice", config.voices.map(({ name, title, language }) => [name, `${title} (${language})`]), config.default_voice);
    const carriesMedia = config.models.some(({ transports }) => transports.includes("webrtc"));
    byId("transport-field").hidden = !carriesMedia;
    this.#fill("transport", TRANSPORTS, "automatic");
    this.#bindSelect("microphone");
    this.#bindSelect("speaker");
    byId("speaker-field").hidden = !sound.canChooseSpeaker;
    this.#bindInstructions();
    for (const [id, name] of [["is-push-to-talk", "isPushToTalk"], ["is-spoken", "isSpoken"], ["is-recording", "isRecording"]]) {
      this.#bindSwitch(byId(id), name);
    }
    byId("open-settings").addEventListener("click", () => this.#open());
    navigator.mediaDevices?.addEventListener?.("devicechange", () => this.#listDevices());
  }

  async #open() {
    this.#dialog.showModal();
    await this.#listDevices();
  }

  #fill(name, choices, fallback) {
    const select = byId(name);
    select.replaceChildren(...choices.map(([value, title]) => option(value, title)));
    const known = choices.some(([value]) => value === this.#preferences[name]);
    if (!known) {
      this.#preferences[name] = fallback;
    }
    select.value = this.#preferences[name];
    this.#bindSelect(name);
  }

  #bindSelect(name) {
    byId(name).addEventListener("change", ({ target }) => {
      this.#preferences[name] = target.value;
    });
  }

  #bindInstructions() {
    const area = byId("instructions");
    area.value = this.#preferences.instructions;
    area.addEventListener("change", () => {
      this.#preferences.instructions = area.value.trim();
    });
  }

  #bindSwitch(box, name) {
    box.checked = this.#preferences[name];
    box.addEventListener("change", () => {
      this.#preferences[name] = box.checked;
    });
    this.#preferences.addEventListener("change", () => {
      box.checked = this.#preferences[name];
    });
  }

  /** Names of devices are known only after the microphone was allowed once. */
  async #listDevices() {
    const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    for (const [name, kind] of [["microphone", "audioinput"], ["speaker", "audiooutput"]]) {
      const found = devices.filter((device) => device.kind === kind && device.deviceId && device.deviceId !== "default");
      const select = byId(name);
      select.replaceChildren(
        option("", "System default"),
        ...found.map(({ deviceId, label }, index) => option(deviceId, label || `${kind === "audioinput" ? "Microphone" : "Speaker"} ${index + 1}`)),
      );
      select.value = found.some(({ deviceId }) => deviceId === this.#preferences[name]) ? this.#preferences[name] : "";
    }
  }
}

function option(value, title) {
  const element = make("option", "", title);
  element.value = value;
  return element;
}
