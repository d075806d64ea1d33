// The talk button for other sites: <script src="https://voice.example.org/embed.js" async></script>. It makes one
// <voiceapp-talk> at the end of the page, unless the page has one of its own. Everything stands in a shadow root.

{
  const script = document.currentScript instanceof HTMLScriptElement ? document.currentScript : null;
  const SERVER = new URL(script?.src ?? location.href).origin;
  const PATIENCE_MS = 15000;
  const WORDS = {
    de: { talk: "Sprechen Sie mit uns", close: "Schließen", refused: "Der Sprachassistent ist auf dieser Seite nicht verfügbar." },
    en: { talk: "Talk to us", close: "Close", refused: "The voice assistant is not available on this page." },
    es: { talk: "Habla con nosotros", close: "Cerrar", refused: "El asistente de voz no está disponible en esta página." },
    fr: { talk: "Parlez-nous", close: "Fermer", refused: "L’assistant vocal n’est pas disponible sur cette page." },
    ja: { talk: "音声で話す", close: "閉じる", refused: "このページでは音声アシスタントを利用できません。" },
    "zh-hans": { talk: "和我们对话", close: "关闭", refused: "此页面无法使用语音助手。" },
  };
  const STYLE = `
    :host { display: inline-block; font: 16px/1.4 system-ui, sans-serif; }
    :host([data-floating]) { position: fixed; inset-block-end: 20px; inset-inline-end: 20px; z-index: var(--voiceapp-layer, 2147483000); }
    button { font: inherit; cursor: pointer; min-height: 48px; border: 0; }
    button:focus-visible { outline: 3px solid var(--voiceapp-accent, #4a3aa6); outline-offset: 2px; }
    .talk { padding: 0 20px; border-radius: var(--voiceapp-radius, 24px); color: var(--voiceapp-accent-ink, #fff);
      background: var(--voiceapp-accent, #4a3aa6); font-weight: 600; box-shadow: 0 4px 16px rgb(0 0 0 / 25%); }
    .panel { position: fixed; inset-block-end: 80px; inset-inline-end: 20px; z-index: var(--voiceapp-layer, 2147483000);
      display: grid; grid-template-rows: auto minmax(0, 1fr); width: min(var(--voiceapp-width, 400px), 100vw - 40px);
      height: min(var(--voiceapp-height, 620px), 100dvh - 100px); overflow: hidden; border-radius: 16px;
      background: var(--voiceapp-surface, #fff); color: var(--voiceapp-ink, #1f1d1a); box-shadow: 0 12px 40px rgb(0 0 0 / 30%); }
    .panel[hidden] { display: none; }
    .close { justify-self: end; width: 48px; background: none; color: inherit; font-size: 22px; }
    iframe { width: 100%; height: 100%; border: 0; }
    p { margin: 0; padding: 20px; }
    @media (max-width: 480px) { .panel { inset: 0; width: auto; height: auto; border-radius: 0; } }`;

  /** Events: `state` (detail: state of the conversation, as listening or ai-speaking). */
  class VoiceappTalk extends HTMLElement {
    #button = document.createElement("button");
    #panel = document.createElement("section");
    #close = document.createElement("button");
    #frame = null;
    #waiting = 0;
    #hear = (event) => this.#heard(event);

    constructor() {
      super();
      const root = this.attachShadow({ mode: "open" });
      const sheet = new CSSStyleSheet(); // which a page's content policy does not forbid
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      this.#button.className = "talk";
      this.#button.setAttribute("part", "button");
      this.#button.setAttribute("aria-expanded", "false");
      this.#panel.className = "panel";
      this.#panel.setAttribute("role", "dialog");
      this.#panel.hidden = true;
      this.#close.className = "close";
      this.#close.textContent = "×";
      this.#panel.append(this.#close);
      root.append(this.#button, this.#panel);
      this.#button.addEventListener("click", () => this.toggle(this.#panel.hidden));
      this.#close.addEventListener("click", () => this.toggle(false));
      this.#panel.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
    }

    connectedCallback() {
      const { talk, close } = this.#words;
      const label = this.getAttribute("label") ?? talk;
      this.#button.textContent = label;
      this.#panel.setAttribute("aria-label", label);
      this.#close.setAttribute("aria-label", close);
      window.addEventListener("message", this.#hear);
    }

    disconnectedCallback() {
      this.toggle(false);
      window.removeEventListener("message", this.#hear);
    }

    get #language() {
      const asked = (this.getAttribute("language") ?? (document.documentElement.lang || navigator.language)).toLowerCase();
      return asked.startsWith("zh") ? "zh-hans" : asked.split("-")[0];
    }

    get #words() {
      return WORDS[this.#language] ?? WORDS.en;
    }

    /** Open the conversation's panel, or close it, which ends the conversation. */
    toggle(isOpen) {
      if (isOpen === (this.#frame !== null)) {
        return;
      }
      clearTimeout(this.#waiting);
      this.#panel.hidden = !isOpen;
      this.#button.setAttribute("aria-expanded", String(isOpen));
      this.#panel.querySelector("p")?.remove();
      this.#frame?.remove();
      this.#frame = isOpen ? this.#makeFrame() : null;
      if (this.#frame) {
        this.#panel.append(this.#frame);
        this.#frame.focus();
        this.#waiting = setTimeout(() => this.#refuse(), PATIENCE_MS);
      } else if (this.isConnected) {
        this.#button.focus();
      }
    }

    #makeFrame() {
      const frame = document.createElement("iframe");
      const query = new URLSearchParams({ site: location.origin, language: this.#language, theme: this.getAttribute("theme") ?? "", agent: this.getAttribute("agent") ?? "" });
      frame.allow = ["microphone", "autoplay", "speaker-selection", "screen-wake-lock"].map((name) => `${name} ${SERVER}`).join("; ");
      frame.title = this.#button.textContent ?? "";
      frame.src = `${SERVER}/embed?${query}`;
      return frame;
    }

    /** The page within did not begin: the site is not on the server's list, or the server is away. */
    #refuse() {
      this.#frame?.remove();
      const words = document.createElement("p");
      words.textContent = this.#words.refused;
      words.setAttribute("role", "alert");
      this.#panel.append(words);
    }

    /** A word from the page within. */
    #heard({ source, origin, data }) {
      if (origin === SERVER && source === this.#frame?.contentWindow && data?.type === "voiceapp.state") {
        clearTimeout(this.#waiting);
        this.dispatchEvent(new CustomEvent("state", { detail: data.state, bubbles: true }));
      }
    }
  }

  if (!customElements.get("voiceapp-talk")) {
    customElements.define("voiceapp-talk", VoiceappTalk);
    const begin = () => {
      if (!document.querySelector("voiceapp-talk")) {
        const element = document.createElement("voiceapp-talk");
        for (const name of ["label", "language", "theme", "agent"]) {
          if (script?.dataset[name]) {
            element.setAttribute(name, script.dataset[name]);
          }
        }
        element.dataset.floating = "";
        document.body.append(element);
      }
    };
    if (document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", begin);
    } else {
      begin();
    }
  }
}
