// The page's words in the language of the page. English is the key; the server puts the others into the page.

const place = globalThis.document?.getElementById?.("words");
const CATALOG = JSON.parse(place?.textContent || "{}");
const UNITS = [["hour", 3600], ["minute", 60], ["second", 1]];
const PAGE_LANGUAGE = globalThis.document?.documentElement?.lang || "en";

/** How numbers and times are written: the person's own variant of the page's language, such as en-GB, where they have one. */
export const LOCALE = globalThis.navigator?.languages?.find((tag) => tag.split("-")[0] === PAGE_LANGUAGE.split("-")[0]) ?? PAGE_LANGUAGE;

/** `text` in the language of the page, with `{name}` replaced by `values.name`. */
export function t(text, values = {}) {
  return filled(CATALOG[text] ?? text, values);
}

/** A text of the page to be given to `t` later: for what a file keeps in English. */
export const marked = (text) => text;

/** `text` with `{name}` replaced by `values.name`, where there is one. */
export function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

/** Whether the page says this in its own language. */
export function isKnown(text) {
  return PAGE_LANGUAGE.startsWith("en") || text in CATALOG;
}

/** "0.41 s". */
export function seconds(milliseconds, digits) {
  const style = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${new Intl.NumberFormat(LOCALE, style).format(milliseconds / 1000)} s`;
}

/** "3 minutes", "1 hour": in the largest of the units that measures it whole. */
export function duration(durationS) {
  const [unit, size] = /** @type {[string, number]} */ (UNITS.find(([, length]) => durationS % Number(length) === 0));
  return new Intl.NumberFormat(LOCALE, { style: "unit", unit, unitDisplay: "long" }).format(durationS / size);
}

/** Hours and minutes of a moment, as people here write them. */
export function timeOfDay(at) {
  return at.toLocaleTimeString(LOCALE, { timeStyle: "short" });
}
