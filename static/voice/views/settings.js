// Settings: model, voice, instructions, devices. Each change holds at once.

import { byId, make } from "./dom.js";
import { withDefault } from "../choices.js";
import { VoiceSample } from "./voice_sample.js";

const TRANSPORTS = [
  ["automatic", "Automatic"],
  ["aoq", "AOQ"],
  ["webrtc", "WebRTC"],
  ["websocket", "WebSocket"],
];

const FOLLOWED = "The language model follows these in its replies.";
const IGNORED = "Only a language model follows these. The built-in assistant, which replies here, does not.";
const LEAVING = {
  nothing: "Your voice and your words stay on this server.",
  words: "Your voice stays on this server. Another server gets the words as text.",
  sound: "Another server gets the sound of your voice.",
};

export class Settings {
  #dialog = byId("settings", HTMLDialogElement);
  #preferences;

  /** `config` is what /voice/config said. */
  constructor(preferences, sound, config) {
    this.#preferences = preferences;
    this.#fill("model", config.models.map(({ name, title }) => [name, title]), config.default_model);
    this.#fill("voice", config.voices.map(({ name, title, language }) => [name, `${title} (${language})`]), config.default_voice);
    new VoiceSample(config.samples_path, preferences);
    this.#fillLanguages(config.languages);
    const carriesMedia = config.models.some(({ transports }) => transports.some((name) => name !== "websocket"));
    byId("transport-field").hidden = !carriesMedia;
    this.#fill("transport", TRANSPORTS, "automatic");
    this.#bindSelect("microphone");
    this.#bindSelect("speaker");
    byId("speaker-field").hidden = !sound.canChooseSpeaker;
    this.#bindInstructions(config.models);
    for (const [id, name] of [["is-push-to-talk", "isPushToTalk"], ["is-spoken", "isSpoken"], ["is-recording", "isRecording"], ["is-developer", "isDeveloper"]]) {
      this.#bindSwitch(byId(id), name);
    }
    const showTools = () => document.body.toggleAttribute("data-developer", preferences.isDeveloper);
    preferences.addEventListener("change", showTools);
    showTools();
    byId("open-settings").addEventListener("click", () => this.#open());
    navigator.mediaDevices?.addEventListener?.("devicechange", () => this.#listDevices());
  }

  async #open() {
    this.#dialog.showModal();
    await this.#listDevices();
  }

  #fill(name, all, fallback) {
    const { choices, chosen } = withDefault(all, this.#preferences[name], fallback);
    const select = byId(name, HTMLSelectElement);
    select.replaceChildren(...choices.map(([value, title]) => option(value, title)));
    this.#preferences[name] = chosen;
    select.value = chosen;
    this.#bindSelect(name);
  }

  /** `codes` of the languages that the server understands; of one there is nothing to choose. */
  #fillLanguages(codes) {
    const names = new Intl.DisplayNames(["en"], { type: "language" });
    const named = codes.map((code) => [code, names.of(code)]).sort(([, one], [, other]) => one.localeCompare(other));
    byId("language-field").hidden = codes.length < 2;
    this.#fill("language", [["", "Automatic"], ...(codes.length < 2 ? [] : named)], "");
  }

  #bindSelect(name) {
    const select = byId(name, HTMLSelectElement);
    select.addEventListener("change", () => {
      this.#preferences[name] = select.value;
    });
  }

  #bindInstructions(models) {
    const show = () => {
      const model = models.find(({ name }) => name === this.#preferences.model);
      byId("instructions-note").textContent = model?.follows_instructions ? FOLLOWED : IGNORED;
      byId("model-note").textContent = LEAVING[model?.leaves] ?? "";
    };
    this.#preferences.addEventListener("change", show);
    show();
    const area = byId("instructions", HTMLTextAreaElement);
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
      const select = byId(name, HTMLSelectElement);
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
