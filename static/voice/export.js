// A conversation as a file for people to keep: as plain text, and as JSON with the figures that the page shows.

import { countedFrom, stages } from "./views/waterfall.js";
import { t } from "./words.js";

export const WHO = { user: t("You"), assistant: t("Assistant"), system: t("Note"), tool: t("Tool"), note: t("Note") };

/** What was said, one paragraph per item. */
export function asText(items) {
  return items.map((item) => `${WHO[item.role] ?? item.role}: ${words(item)}`).join("\n\n");
}

/**
 * The same as JSON. `metrics` holds the server's marks in ms after one origin, which `counted_from` names. `stages_ms`
 * holds what each stage added, as the page shows it: the stages before "playback" sum up to `first_audio_ms`, and
 * "playback" is `playout_ms`.
 */
export function asJson(items, exportedAt = new Date()) {
  const rows = items.map((item) => ({
    id: item.id,
    role: item.role,
    at: item.at.toISOString(),
    text: item.text,
    unheard: item.unheard || undefined,
    tool: item.tool ?? undefined,
    author: item.author ?? undefined,
    counted_from: item.metrics ? countedFrom(item.metrics) : undefined,
    metrics: item.metrics ? { ...item.metrics, playout_ms: item.playoutMs } : undefined,
    stages_ms: item.metrics ? stagesOf(item) : undefined,
  }));
  return JSON.stringify({ exported_at: exportedAt.toISOString(), items: rows }, null, 2);
}

function words({ text, unheard, tool }) {
  if (tool) {
    return `${tool.name}(${tool.arguments})`;
  }
  const parts = [text.trim(), unheard.trim() ? t("[interrupted, not heard: {words}]", { words: unheard.trim() }) : ""];
  return parts.filter(Boolean).join(" ");
}

function stagesOf({ metrics, playoutMs }) {
  return Object.fromEntries(stages(metrics, playoutMs).map(({ title, ms }) => [title, ms]));
}
