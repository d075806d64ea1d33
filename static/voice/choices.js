// What there is to choose from, and what is chosen of it.

import { t } from "./words.js";

/**
 * `choices`: [[value, title]]; `stored` was chosen before, and `fallback` is what the server takes by itself: either may
 * not be among them. Returns {choices, chosen}, where one of the choices is always the chosen one.
 */
export function withDefault(choices, stored, fallback) {
  const has = (value) => choices.some(([known]) => known === value);
  if (has(fallback)) {
    return { choices, chosen: has(stored) ? stored : fallback };
  }
  return { choices: [["", t("Default")], ...choices], chosen: has(stored) ? stored : "" };
}
