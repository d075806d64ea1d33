import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { Readiness } from "../../../static/voice/readiness.js";
import { Clock } from "./clock.mjs";

const LOADING = { ready: false, reasons: [{ code: "warming_up", message: "The server is starting." }] };
const READY = { ready: true, reasons: [] };

let clock;
beforeEach(() => {
  clock?.restore();
  clock = new Clock();
});
after(() => clock.restore());

/** Asks a server, patiently: what came of it, and how often it was asked. */
function ask(say, isWanted = () => true) {
  const found = { asked: 0, waits: 0, obstacle: undefined };
  const readiness = new Readiness(async () => {
    found.asked += 1;
    return say();
  });
  const waited = () => (found.waits += 1);
  readiness.patientObstacle(() => isWanted(found), waited).then((obstacle) => (found.obstacle = obstacle));
  return found;
}

test("a server that takes minutes to load is waited for", async () => {
  let isLoaded = false;
  const found = ask(() => (isLoaded ? READY : LOADING));
  await clock.pass(300);
  assert.equal(found.obstacle, undefined);
  isLoaded = true;
  await clock.pass(1);
  assert.equal(found.obstacle, null);
  assert.ok(found.waits > 100);
});

test("what is in the way when it has loaded is told", async () => {
  const says = [LOADING, LOADING, { ready: false, reasons: [{ code: "models_missing", message: "" }] }];
  const found = ask(() => says.shift());
  await clock.pass(5);
  assert.equal(found.obstacle.code, "models_missing");
});

test("nobody waits any more when the person has given up", async () => {
  const found = ask(() => LOADING, ({ asked }) => asked < 3);
  await clock.pass(30);
  assert.deepEqual([found.asked, found.obstacle.code], [3, "warming_up"]);
});
