import assert from "node:assert/strict";
import { mock, test } from "node:test";

globalThis.window = new EventTarget();
const { Connection } = await import("../../../static/voice/connection.js");

/** A server that greets and hangs up `lastsMs` later. */
class Fickle extends EventTarget {
  constructor(lastsMs) {
    super();
    this.lastsMs = lastsMs;
  }

  async connect() {
    setTimeout(() => this.dispatchEvent(new CustomEvent("event", { detail: { type: "session.created", session: {} } })), 1);
    setTimeout(() => this.dispatchEvent(new CustomEvent("close", { detail: { code: 4011, reason: "" } })), this.lastsMs);
  }

  close() {}
}

async function dialsWithin(seconds, lastsMs) {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let dials = 0;
  let problem = null;
  const makeTransport = () => {
    dials += 1;
    return new Fickle(lastsMs);
  };
  const connection = new Connection({ makeTransport, diagnose: async () => ({ code: "refused" }) });
  connection.addEventListener("failed", ({ detail }) => {
    problem = detail.code;
  });
  connection.open();
  for (let elapsedMs = 0; elapsedMs < seconds * 1000; elapsedMs += 50) {
    await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(50);
  }
  mock.timers.reset();
  return { dials, problem };
}

test("a server that hangs up at once is not stormed, and given up in the end", async () => {
  assert.deepEqual(await dialsWithin(120, 5), { dials: 9, problem: "connection_lost" });
});

test("a session that lasted is always come back to", async () => {
  const { dials, problem } = await dialsWithin(300, 20000);
  assert.ok(dials > 10);
  assert.equal(problem, null);
});
