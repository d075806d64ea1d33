import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { SessionReport } from "../../../static/voice/transports/session_report.js";

/** What a server is told of a session, as [url, report]. */
function told() {
  const found = [];
  globalThis.fetch = async (url, { method, body, keepalive }) => {
    assert.deepEqual([method, keepalive], ["POST", true]);
    found.push([url, JSON.parse(body)]);
    throw new TypeError("nobody is there");
  };
  return found;
}

test("a session that the server counts as ended is reported no more", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  let calls = 0;
  globalThis.fetch = async () => {
    calls += 1;
    return { status: 404 };
  };
  new SessionReport("/voice/sessions/a.b", () => assert.fail("it was never known")).connected();
  await new Promise(setImmediate);
  mock.timers.tick(180000);
  assert.equal(calls, 1);
  mock.timers.reset();
});

test("a session that was known and counts as ended now is hung up once, and its end not reported", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const statuses = [200, 503, 404, 200];
  const told = [];
  globalThis.fetch = async (url, { body }) => {
    told.push(JSON.parse(body).state);
    const status = statuses.shift();
    return { ok: status === 200, status };
  };
  let hungUp = 0;
  const report = new SessionReport("/voice/sessions/a.b", () => {
    hungUp += 1;
    report.ended(4000);
  });
  report.connected();
  for (const expected of [0, 0, 1, 1]) {
    await new Promise(setImmediate);
    assert.equal(hungUp, expected);
    mock.timers.tick(60000);
  }
  assert.deepEqual(told, ["connected", "connected", "connected"]);
  mock.timers.reset();
});

test("a session is reported every minute until it has ended, and its end once", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const found = told();
  const report = new SessionReport("/voice/sessions/a.b", () => assert.fail("it is not over"));
  report.connected();
  mock.timers.tick(120000);
  report.ended(1006);
  report.ended(1000);
  report.connected();
  mock.timers.tick(120000);
  const connected = ["/voice/sessions/a.b", { state: "connected" }];
  assert.deepEqual(found, [connected, connected, connected, ["/voice/sessions/a.b", { state: "ended", code: 1006 }]]);
  mock.timers.reset();
});
