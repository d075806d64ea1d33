// The small words in the bar: how the connection is, how much time is left, and by which transport.

import { byId } from "./dom.js";
import { t } from "../words.js";

const LAST_MINUTES_S = 10 * 60;

export class Link {
  #place = byId("link");
  #text = byId("link-text");
  #session;
  #limitS;
  #isSlow = false;
  #transport = byId("link-transport");
  #quality = null;

  /** `limitS`: how long a session may last. */
  constructor(session, limitS) {
    this.#session = session;
    this.#limitS = limitS;
    session.addEventListener("state", () => this.#show());
    session.addEventListener("congested", ({ detail }) => {
      this.#isSlow = detail;
      this.#show();
    });
    session.addEventListener("quality", ({ detail }) => {
      this.#quality = detail;
      this.#show();
    });
    setInterval(() => this.#show(), 1000);
    this.#show();
  }

  #show() {
    const [link, text] = this.#words();
    this.#place.hidden = text === "";
    this.#place.dataset.link = link;
    if (this.#text.textContent !== text) {
      this.#text.textContent = text;
    }
    this.#showTransport();
  }

  #showTransport() {
    const name = this.#session.isLive ? this.#session.transportName : null;
    this.#transport.hidden = name === null;
    if (name === "WebSocket") {
      this.#quality = null;
    }
    this.#transport.title = name === null ? "" : this.#session.whyNotBetter.join("\n");
    const { rttMs, lossShare } = this.#quality ?? {};
    const words = [name, rttMs == null ? "" : `${rttMs} ms`, lossShare == null ? "" : t("{share} % lost", { share: Math.round(lossShare * 100) })];
    const badge = words.filter(Boolean).join(" · ");
    if (this.#transport.textContent !== badge) {
      this.#transport.textContent = badge;
    }
  }

  #words() {
    if (this.#session.state === "reconnecting") {
      return ["lost", t("reconnecting")];
    }
    if (!this.#session.isLive) {
      return ["off", { connecting: t("connecting"), queued: t("waiting"), "your-turn": t("your turn") }[this.#session.state] ?? ""];
    }
    if (this.#isSlow) {
      return ["slow", t("slow network")];
    }
    const leftS = Math.max(0, Math.round(this.#limitS - (Date.now() - this.#session.liveSince) / 1000));
    if (leftS > LAST_MINUTES_S) {
      return ["on", t("connected")];
    }
    return ["on", t("{left} left", { left: `${Math.floor(leftS / 60)}:${String(leftS % 60).padStart(2, "0")}` })];
  }
}
