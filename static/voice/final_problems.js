// After which closes and problems trying again cannot help. Pure, so that bare JavaScript tests it.

import { GOES_ON_ELSEWHERE } from "./transports/failure.js";

/** Close codes after which trying again cannot help, and the notice that explains each. */
const FINAL_CLOSES = { 1000: "ended", 4000: "session_over", 4401: "signed_out" };
const TOO_SLOW = 4408;
const FIRST_OF_OURS = 4000; // lower codes end the connection, and say nothing of the session

/** What a person has to do something about: trying again would only be refused again. */
const FINAL_PROBLEMS = ["signed_out", "not_allowed", "guest_limit"];

/** What passes by itself. Whatever else is in the way is believed when it has been said a few times. */
const PASSING_PROBLEMS = ["unreachable", "at_capacity", "warming_up", "draining", "database_unreachable"];
export const TIMES_BELIEVED = 6;

/** What a close code means: the code of a notice for one that will not change, or null where coming back may help. */
export function finalClose(code) {
  const isRefusal = code >= 4400 && code < 4500 && code !== TOO_SLOW;
  return FINAL_CLOSES[code] ?? (isRefusal ? "refused" : null);
}

/** Whether a close code says that the session has ended as well. */
export function endsSession(code) {
  return code >= FIRST_OF_OURS && code !== GOES_ON_ELSEWHERE;
}

/** Whether a problem will not change, having been told `times` times in a row. */
export function isFinal(problem, times) {
  return FINAL_PROBLEMS.includes(problem) || times >= TIMES_BELIEVED;
}

/** Whether a problem passes by itself. */
export function isPassing(problem) {
  return PASSING_PROBLEMS.includes(problem);
}
