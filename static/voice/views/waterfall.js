// Where the time of the last turn went, from the last word spoken to the first sound heard.

import { byId, make } from "./dom.js";

const PARTS = [
  { name: "turn", title: "end of turn", key: "end_of_turn_ms" },
  { name: "words", title: "recognition", key: "recognition_ms" },
  { name: "thought", title: "first token", key: "first_token_ms" },
  { name: "voice", title: "first audio", key: "first_audio_ms" },
];

/** Durations from marks: what each stage added after the one before it. */
export function stages(metrics, playoutMs) {
  const parts = [];
  let reachedMs = 0;
  for (const { name, title, key } of PARTS) {
    const markMs = metrics[key];
    if (markMs != null) {
      parts.push({ name, title, ms: Math.max(0, Math.round(markMs - reachedMs)) });
      reachedMs = Math.max(reachedMs, markMs);
    }
  }
  if (playoutMs != null) {
    parts.push({ name: "playout", title: "playout", ms: playoutMs });
  }
  return parts;
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

export class Waterfall {
  #figure = byId("waterfall");

  constructor(conversation) {
    conversation.addEventListener("item", ({ detail }) => {
      if (detail.metrics && detail === conversation.last("assistant")) {
        this.#show(stages(detail.metrics, detail.playoutMs));
      }
    });
    conversation.addEventListener("cleared", () => {
      this.#figure.hidden = true;
    });
  }

  #show(parts) {
    const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
    this.#figure.hidden = parts.length === 0;
    const legend = make("figcaption", "waterfall-legend", make("span", "waterfall-total", `${totalMs} ms`));
    for (const { name, title, ms } of parts) {
      legend.append(make("span", `part-${name}`, `${title} ${ms}`));
    }
    this.#figure.replaceChildren(stageBar(parts), legend);
  }
}
