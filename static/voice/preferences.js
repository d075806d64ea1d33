// What the person chose, kept in this browser.

const STORAGE_KEY = "voiceapp.preferences";
const DEFAULTS = {
  model: "",
  transport: "automatic",
  voice: "",
  language: "",
  instructions: "",
  microphone: "",
  speaker: "",
  isPushToTalk: false,
  isSpoken: true,
  isAnnounced: true,
  isRecording: false,
  isTranscriptOpen: false,
  isDeveloper: false,
  patience: "normal",
  theme: "system",
};

/** @typedef {typeof DEFAULTS} Choices */

/** One property per choice (`Choices`); events: `change` (detail: name). */
export class Preferences extends EventTarget {
  #values;

  constructor(storage) {
    super();
    this.#values = { ...DEFAULTS, ...stored(storage) };
    for (const name of Object.keys(DEFAULTS)) {
      Object.defineProperty(this, name, {
        enumerable: true,
        get: () => this.#values[name],
        set: (value) => {
          this.#set(storage, name, value);
        },
      });
    }
  }

  #set(storage, name, value) {
    if (this.#values[name] === value) {
      return;
    }
    this.#values[name] = value;
    try {
      storage.setItem(STORAGE_KEY, JSON.stringify(this.#values));
    } catch {
      // Storage is full or forbidden: the choice holds until the page is closed.
    }
    this.dispatchEvent(new CustomEvent("change", { detail: name }));
  }
}

function stored(storage) {
  try {
    const values = JSON.parse(storage.getItem(STORAGE_KEY) ?? "{}");
    return Object.fromEntries(Object.entries(values).filter(([name]) => name in DEFAULTS));
  } catch {
    return {};
  }
}
