import assert from "node:assert/strict";
import { test } from "node:test";
import { Clock } from "./clock.mjs";

globalThis.window = new EventTarget();
globalThis.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
const { Connection } = await import("../../../static/voice/connection.js");

/** A server behind a network. `isReachable`, `isSilent` (a network that swallows everything) and `problem` may change. */
class World {
  dials = [];
  isReachable = true;
  isSilent = false;
  problem = null;
  lastsMs = Infinity;
  closesWith = { code: 1006, reason: "" };
  failures = [];
  sessions = 0;
  losses = 0;
  greeting = { type: "session.created", session: {} };
  sent = [];

  constructor(clock) {
    this.clock = clock;
    document.visibilityState = "visible";
    this.connection = new Connection({
      makeTransport: (failed, query) => (failed.length === 0 ? new Line(this, query) : null),
      pauseReplies: async () => [{ itemId: "item_1", heardMs: 1200 }],
      diagnose: async () => this.problem ?? { code: this.isReachable && !this.isSilent ? "refused" : "unreachable", message: "" },
    });
    this.connection.addEventListener("failed", ({ detail }) => this.failures.push(detail));
    this.connection.addEventListener("lost", () => {
      this.losses += 1;
    });
    this.connection.addEventListener("event", ({ detail }) => {
      this.sessions += detail.type === "session.created" ? 1 : 0;
    });
  }

  /** Cut the line that is open. */
  cut(code = 1006, reason = "") {
    this.line.end(code, reason);
  }

  pass(seconds, stepMs) {
    return this.clock.pass(seconds, stepMs);
  }
}

class Line extends EventTarget {
  name = "WebSocket";

  constructor(world, query) {
    super();
    this.world = world;
    this.query = query;
    world.dials.push(world.clock.nowMs);
  }

  connect() {
    this.world.line = this;
    return new Promise((resolve, reject) => {
      this.reject = reject;
      if (this.world.isSilent) {
        return;
      }
      if (!this.world.isReachable || this.world.problem) {
        reject(new Error("no"));
        return;
      }
      resolve();
      setTimeout(() => this.tell(this.world.greeting), 1);
      if (this.world.lastsMs < Infinity) {
        setTimeout(() => this.end(this.world.closesWith.code, this.world.closesWith.reason), this.world.lastsMs);
      }
    });
  }

  tell(detail) {
    this.dispatchEvent(new CustomEvent("event", { detail }));
  }

  end(code, reason) {
    this.dispatchEvent(new CustomEvent("close", { detail: { code, reason } }));
  }

  send(event) {
    this.world.sent.push(event.event_id);
    if (event.type === "session.update" && !this.world.isSilent) {
      setTimeout(() => this.tell({ type: "session.updated", session: {} }), 100);
    }
    return true;
  }

  abandon() {
    this.close();
  }

  close() {
    this.reject?.(new Error("closed"));
  }
}

/** A test in a world with a clock of its own and an open session that has lasted. */
function inWorld(name, body) {
  test(name, async () => {
    const clock = new Clock();
    try {
      const world = new World(clock);
      world.connection.open();
      await world.pass(20);
      assert.equal(world.connection.phase, "open");
      world.dials = [];
      world.sessions = 0;
      await body(world);
      world.connection.close();
    } finally {
      clock.restore();
    }
  });
}

inWorld("an outage of any length is waited for, at a rate that a server bears", async (world) => {
  world.isReachable = false;
  world.cut();
  await world.pass(45);
  assert.ok(world.dials.length >= 8 && world.dials.length <= 16, String(world.dials));
  await world.pass(3600, 500);
  assert.ok(world.dials.length < 300, String(world.dials.length));
  assert.deepEqual([world.connection.phase, world.failures.length, world.losses], ["reconnecting", 0, 1]);
  world.isReachable = true;
  await world.pass(19);
  assert.deepEqual([world.connection.phase, world.sessions], ["open", 1]);
});

inWorld("an outage of 45 seconds is over a few seconds after its end", async (world) => {
  world.isReachable = false;
  world.cut();
  await world.pass(45);
  world.isReachable = true;
  await world.pass(7);
  assert.equal(world.connection.phase, "open");
});

inWorld("when the network says that it is back, the next try comes at once", async (world) => {
  world.isReachable = false;
  world.cut();
  await world.pass(600);
  world.isReachable = true;
  window.dispatchEvent(new Event("online"));
  await world.pass(0.1);
  assert.equal(world.connection.phase, "open");
});

inWorld("a try that hangs in a dead network is given up when the network is back", async (world) => {
  world.isSilent = true;
  world.cut();
  await world.pass(3);
  assert.equal(world.dials.length, 1);
  world.isSilent = false;
  window.dispatchEvent(new Event("online"));
  await world.pass(0.2);
  assert.deepEqual([world.connection.phase, world.dials.length], ["open", 2]);
});

inWorld("a hidden tab tries for two minutes, then waits until it is seen", async (world) => {
  world.isReachable = false;
  document.visibilityState = "hidden";
  world.cut();
  await world.pass(110);
  const early = world.dials.length;
  assert.ok(early > 15, String(early));
  await world.pass(30);
  const late = world.dials.length;
  await world.pass(3600, 500);
  assert.equal(world.dials.length, late);
  world.isReachable = true;
  document.visibilityState = "visible";
  document.dispatchEvent(new Event("visibilitychange"));
  await world.pass(0.1);
  assert.equal(world.connection.phase, "open");
});

inWorld("the person can call it off", async (world) => {
  world.isReachable = false;
  world.cut();
  await world.pass(45);
  world.connection.close();
  const { length } = world.dials;
  await world.pass(600);
  assert.deepEqual([world.dials.length, world.connection.phase], [length, "closed"]);
});

for (const code of ["signed_out", "not_allowed", "guest_limit"]) {
  inWorld(`${code} is not asked twice`, async (world) => {
    world.problem = { code, message: "Do something about it.", reasons: [] };
    world.cut();
    await world.pass(60);
    assert.deepEqual([world.dials.length, world.failures], [1, [world.problem]]);
  });
}

inWorld("a refusal without a lasting reason is believed when it was heard six times", async (world) => {
  world.problem = { code: "refused", message: "", reasons: [] };
  world.cut();
  await world.pass(120);
  assert.deepEqual([world.dials.length, world.failures.map(({ code }) => code)], [6, ["refused"]]);
});

inWorld("a full, starting or stopping server is waited for", async (world) => {
  world.cut();
  for (const code of ["draining", "unreachable", "warming_up", "at_capacity"]) {
    world.problem = { code, message: "", reasons: [] };
    await world.pass(60);
  }
  assert.equal(world.connection.phase, "reconnecting");
  world.problem = null;
  await world.pass(19);
  assert.equal(world.connection.phase, "open");
});

for (const [code, card] of [[4000, "session_over"], [4401, "signed_out"], [4400, "refused"], [4402, "refused"], [1000, "ended"]]) {
  inWorld(`the server's ${code} is its last word`, async (world) => {
    world.cut(code, "The reason.");
    await world.pass(60);
    assert.deepEqual([world.dials.length, world.failures], [0, [{ code: card, message: "The reason.", reasons: [] }]]);
  });
}

for (const code of [4011, 4012, 4408, 4503]) {
  inWorld(`after the server's ${code} the page comes back`, async (world) => {
    world.cut(code, "");
    await world.pass(5);
    assert.deepEqual([world.connection.phase, world.dials.length], ["open", 1]);
  });
}

inWorld("a server that hangs up at once is not stormed, and is believed in the end", async (world) => {
  world.lastsMs = 5;
  world.closesWith = { code: 4503, reason: "The language model does not answer." };
  world.cut();
  await world.pass(300);
  assert.ok(world.dials.length <= 7, String(world.dials.length));
  assert.deepEqual(world.failures, [{ code: "refused", message: "The language model does not answer.", reasons: [] }]);
});

inWorld("a network that breaks every session soon is tried ever more slowly, but never given up", async (world) => {
  world.lastsMs = 500;
  world.cut();
  await world.pass(600);
  assert.ok(world.dials.length > 40 && world.dials.length < 130, String(world.dials.length));
  assert.equal(world.failures.length, 0);
});

inWorld("a session that lasted is always come back to", async (world) => {
  world.lastsMs = 20000;
  world.cut();
  await world.pass(300);
  assert.ok(world.dials.length > 10);
  assert.equal(world.failures.length, 0);
});

for (const [change, happen] of [
  ["the network comes back", () => window.dispatchEvent(new Event("online"))],
  ["the network goes", () => window.dispatchEvent(new Event("offline"))],
  ["the tab comes back", () => document.dispatchEvent(new Event("visibilitychange"))],
  ["speech piles up", (world) => world.line.dispatchEvent(new CustomEvent("congested", { detail: true }))],
]) {
  inWorld(`when ${change}, a session that died without a word is noticed`, async (world) => {
    world.isSilent = true;
    happen(world);
    await world.pass(13);
    assert.equal(world.losses, 1);
    world.isSilent = false;
    window.dispatchEvent(new Event("online"));
    await world.pass(1);
    assert.equal(world.connection.phase, "open");
  });

  inWorld(`when ${change}, a session that lives goes on`, async (world) => {
    happen(world);
    await world.pass(20);
    assert.deepEqual([world.losses, world.dials.length, world.connection.phase], [0, 0, "open"]);
  });
}

inWorld("when the browser says that it is offline, a dead connection is known within two seconds", async (world) => {
  promise(world);
  world.isSilent = true;
  document.dispatchEvent(new Event("visibilitychange")); // a sign of life is waited for already, for longer
  await world.pass(0.1);
  window.dispatchEvent(new Event("offline"));
  world.connection.send({ type: "response.create", event_id: "said in doubt" });
  await world.pass(1.9);
  assert.equal(world.connection.phase, "reconnecting");
  await world.pass(1);
  assert.equal(world.connection.send({ type: "response.create", event_id: "said offline" }), true);
  world.isSilent = false;
  world.sent = [];
  world.greeting = { type: "session.resumed", event_id: "event_0", received: 0 };
  window.dispatchEvent(new Event("online"));
  await world.pass(1);
  assert.equal(world.connection.phase, "open");
  assert.deepEqual(world.sent.filter((id) => id?.startsWith("said")), ["said in doubt", "said offline"]);
});

/** The session can be resumed from now on. */
function promise(world) {
  world.line.tell({ type: "session.resumable", event_id: "event_2", token: "secret", grace_s: 20 });
  world.line.tell({ type: "response.created", event_id: "event_7", response: {} });
}

inWorld("a session that waits goes on over the next connection", async (world) => {
  promise(world);
  world.connection.send({ type: "response.create", event_id: "arrived" });
  world.connection.send({ type: "response.cancel", event_id: "lost on the way" });
  world.greeting = { type: "session.resumed", event_id: "event_0", received: 1 };
  let resumed = 0;
  world.connection.addEventListener("resumed", () => {
    resumed += 1;
  });
  world.sent = [];
  world.cut();
  assert.equal(world.connection.send({ type: "session.update", event_id: "said meanwhile" }), true);
  await world.pass(0.1);
  assert.equal(world.connection.phase, "open");
  assert.deepEqual(world.line.query, { resume: "secret", last: 7, heard: "item_1:1200" });
  assert.deepEqual([world.sessions, world.losses, resumed], [0, 0, 1]);
  assert.deepEqual(world.sent, ["lost on the way", "said meanwhile"]);
});

/** The connection names a token of its own choice, and nothing of a session before. */
function asksForAnother(world) {
  assert.deepEqual(Object.keys(world.line.query), ["resume"]);
  assert.match(world.line.query.resume, /^[0-9a-f]{32}$/);
}

inWorld("a session that does not wait any more is lost, and another begins", async (world) => {
  promise(world);
  world.cut();
  await world.pass(3);
  assert.equal(world.line.query.resume, "secret");
  assert.deepEqual([world.sessions, world.losses], [1, 1]);
  world.cut();
  await world.pass(3);
  asksForAnother(world);
  assert.deepEqual([world.sessions, world.losses], [2, 2]);
});

inWorld("after the time that it waits, a session is not asked for", async (world) => {
  promise(world);
  world.isReachable = false;
  world.cut();
  await world.pass(30);
  asksForAnother(world);
  world.isReachable = true;
  await world.pass(10);
  assert.deepEqual([world.sessions, world.losses], [1, 1]);
});

inWorld("a session that the server has ended is not asked for", async (world) => {
  promise(world);
  world.cut(4012, "The server is stopping; connect again.");
  await world.pass(3);
  asksForAnother(world);
  assert.deepEqual([world.sessions, world.losses], [1, 1]);
});
