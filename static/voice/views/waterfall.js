// Where the time of the last reply went: from the end of the person's turn to the first sound heard.

import { byId, make } from "./dom.js";
import { marked, seconds, t } from "../words.js";

/** In their order. `key`: the server's mark in ms after one origin; `meaning`: what the stage lasts until. */
const STAGES = [
  { name: "turn", title: marked("end of turn"), key: "end_of_turn_ms", meaning: t("until it was clear that you had finished") },
  { name: "words", title: marked("recognition"), key: "recognition_ms", meaning: t("until your words were known") },
  { name: "thought", title: marked("first word"), key: "first_token_ms", meaning: t("until the reply had its first word") },
  { name: "voice", title: marked("first sound"), key: "first_audio_ms", meaning: t("until the first sound of the reply was sent") },
];
const PLAYBACK = { name: "playback", title: marked("playback"), meaning: t("until you heard it") };

/** Durations from marks: what each stage added after the one before it, [{name, title, meaning, ms}]. */
export function stages(metrics, playoutMs) {
  const parts = [];
  let reachedMs = 0;
  for (const { key, ...stage } of STAGES) {
    const markMs = metrics[key];
    if (markMs != null) {
      parts.push({ ...stage, ms: Math.max(0, Math.round(markMs - reachedMs)) });
      reachedMs = Math.max(reachedMs, markMs);
    }
  }
  if (playoutMs != null) {
    parts.push({ ...PLAYBACK, ms: Math.round(playoutMs) });
  }
  return parts;
}

/** From when the marks of a reply count: only a spoken turn has an end that the server had to find. */
export function countedFrom(metrics) {
  return metrics.end_of_turn_ms == null ? marked("your message") : marked("the end of your speech");
}

/** What the stages together measure: "heard 450 ms after the end of your speech". */
export function total(metrics, playoutMs) {
  const totalMs = stages(metrics, playoutMs).reduce((sum, { ms }) => sum + ms, 0);
  const values = { ms: totalMs, origin: t(countedFrom(metrics)) };
  if (playoutMs != null) {
    return t("heard {ms} ms after {origin}", values);
  }
  return metrics.first_audio_ms != null ? t("spoken {ms} ms after {origin}", values) : t("written {ms} ms after {origin}", values);
}

/** The stages as one bar, each as long as it took. */
export function stageBar(parts) {
  const bar = make("div", "waterfall-bar");
  bar.setAttribute("aria-hidden", "true");
  for (const { name, ms } of parts) {
    const part = make("span", `waterfall-part part-${name}`);
    part.style.setProperty("--share", String(ms));
    bar.append(part);
  }
  return bar;
}

/** Which of several models replied: "replied by acme/large"; empty where there is one. */
export function repliedBy(metrics) {
  return typeof metrics.served_by === "string" ? t("replied by {server}", { server: metrics.served_by }) : "";
}

export class Waterfall {
  #figure = byId("waterfall");
  #chip = make("summary", ""); // stays, or the focus would be lost

  constructor(conversation) {
    this.#figure.append(this.#chip);
    conversation.addEventListener("item", ({ detail }) => {
      if (detail !== conversation.last("assistant")) {
        return;
      }
      if (detail.metrics) {
        this.#show(detail);
      } else {
        this.#figure.hidden = true; // what is there is about the reply before
      }
    });
    conversation.addEventListener("cleared", () => {
      this.#figure.hidden = true;
    });
  }

  #show({ metrics, playoutMs }) {
    const parts = stages(metrics, playoutMs);
    this.#figure.hidden = parts.length === 0;
    const legend = make("div", "waterfall-legend", make("span", "waterfall-total", total(metrics, playoutMs)));
    for (const { name, title, meaning, ms } of parts) {
      const entry = make("span", `part-${name}`, `${t(title)} ${ms}`);
      entry.title = `${t(title)}: ${ms} ms ${meaning}`;
      legend.append(entry);
    }
    const server = repliedBy(metrics);
    if (server) {
      legend.append(make("span", "waterfall-server", server));
    }
    const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
    this.#chip.textContent = seconds(totalMs, 1);
    while (this.#chip.nextSibling) {
      this.#chip.nextSibling.remove();
    }
    this.#figure.append(stageBar(parts), legend);
  }
}
