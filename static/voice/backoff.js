// How long to wait before trying again. Pure, so that bare JavaScript tests it.

const FIRST_DELAYS_MS = [200, 1000, 2000, 4000];
const USUAL_DELAY_MS = 5000;
const USUAL_TRIES = 30; // two and a half minutes and more
const LATE_DELAY_MS = 15000;
const JITTER_SHARE = 0.25; // or all pages that lost the same server would come back at the same moment

/** How long to wait before try number `tries` (from 0): `random()` in [0, 1) spreads it by a quarter either way. */
export function delayMs(tries, random = Math.random) {
  const usualMs = tries < USUAL_TRIES ? USUAL_DELAY_MS : LATE_DELAY_MS;
  return Math.round((FIRST_DELAYS_MS[tries] ?? usualMs) * (1 + JITTER_SHARE * (2 * random() - 1)));
}
