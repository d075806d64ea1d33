// Settings: model, voice, instructions, devices. Each change holds at once.

import { byId, make } from "./dom.js";
import { withDefault } from "../choices.js";
import { VoiceSample } from "./voice_sample.js";
import { LOCALE, t } from "../words.js";

const TRANSPORTS = [
  ["automatic", t("Automatic")],
  ["aoq", "AOQ"],
  ["webrtc", "WebRTC"],
  ["websocket", "WebSocket"],
];

const PATIENCES = [
  ["calm", t("Calm: waits while you think")],
  ["normal", t("Normal: replies when you have finished")],
  ["quick", t("Quick: replies at the first pause")],
];
const YEAR_S = 365 * 24 * 3600;
const THEMES = [
  ["system", t("As the system")],
  ["light", t("Light")],
  ["dark", t("Dark")],
];

const FOLLOWED = t("The language model follows these in its replies.");
const IGNORED = t("Only a language model follows these. The built-in assistant, which replies here, does not.");
const LEAVING = {
  nothing: t("Your voice and your words stay on this server."),
  words: t("Your voice stays on this server. Another server gets the words as text."),
  sound: t("Another server gets the sound of your voice."),
};

export class Settings {
  #dialog = byId("settings", HTMLDialogElement);
  #preferences;

  /** `config` is what /voice/config said. */
  constructor(preferences, sound, config) {
    this.#preferences = preferences;
    this.#fill("model", config.models.map(({ name, title }) => [name, title]), config.default_model);
    this.#fill("voice", config.voices.map(({ name, title, language }) => [name, `${title} (${language})`]), config.default_voice);
    new VoiceSample((name) => `${config.samples_path}${name}?${new URLSearchParams(config.query)}`, preferences);
    this.#fillLanguages(config.languages);
    const carriesMedia = config.models.some(({ transports }) => transports.some((name) => name !== "websocket"));
    byId("transport-field").hidden = !carriesMedia;
    this.#fill("transport", TRANSPORTS, "automatic");
    this.#fill("patience", PATIENCES, "normal");
    this.#fill("theme", THEMES, "system");
    for (const id of ["microphone", "microphone-menu", "speaker"]) {
      this.#bindSelect(id.replace("-menu", ""), id);
    }
    byId("speaker-field").hidden = !sound.canChooseSpeaker;
    this.#bindInstructions(config.models);
    for (const [id, name] of [["is-push-to-talk", "isPushToTalk"], ["is-spoken", "isSpoken"], ["is-announced", "isAnnounced"], ["is-recording", "isRecording"], ["is-developer", "isDeveloper"]]) {
      this.#bindSwitch(byId(id), name);
    }
    const language = byId("page-language", HTMLSelectElement);
    language.addEventListener("change", () => {
      document.cookie = `language=${language.value}; path=/; max-age=${YEAR_S}; samesite=lax`;
      location.reload();
    });
    const showTools = () => document.body.toggleAttribute("data-developer", preferences.isDeveloper);
    preferences.addEventListener("change", ({ detail }) => {
      showTools();
      if (detail === "theme") {
        document.dispatchEvent(new CustomEvent("theme", { detail: preferences.theme }));
      }
    });
    showTools();
    byId("microphone-menu").addEventListener("focus", () => this.listDevices());
    byId("open-settings").addEventListener("click", () => this.#open());
    navigator.mediaDevices?.addEventListener?.("devicechange", () => this.listDevices());
  }

  async #open() {
    this.#dialog.showModal();
    await this.listDevices();
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
    const names = new Intl.DisplayNames([LOCALE], { type: "language" });
    const named = codes.map((code) => [code, names.of(code)]).sort(([, one], [, other]) => one.localeCompare(other));
    byId("language-field").hidden = codes.length < 2;
    this.#fill("language", [["", t("Automatic")], ...(codes.length < 2 ? [] : named)], "");
  }

  #bindSelect(name, id = name) {
    const select = byId(id, HTMLSelectElement);
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
  async listDevices() {
    const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    for (const [id, kind] of [["microphone", "audioinput"], ["microphone-menu", "audioinput"], ["speaker", "audiooutput"]]) {
      const name = id.replace("-menu", "");
      const found = devices.filter((device) => device.kind === kind && device.deviceId && device.deviceId !== "default");
      const select = byId(id, HTMLSelectElement);
      select.replaceChildren(
        option("", t("System default")),
        ...found.map(({ deviceId, label }, index) => option(deviceId, label || `${kind === "audioinput" ? t("Microphone") : t("Speaker")} ${index + 1}`)),
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
