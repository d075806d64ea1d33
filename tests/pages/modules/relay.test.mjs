import assert from "node:assert/strict";
import { test } from "node:test";
import { requestGrant } from "../../../static/voice/transports/relay.js";

const signal = new AbortController().signal;
const csrfToken = async () => "token";

/** A server that answers a request for a grant so. */
function answers(body, init) {
  globalThis.fetch = async () => new Response(JSON.stringify(body), init);
}

test("a grant comes with the address at which its session is reported", async () => {
  answers({ sid: "s" }, { headers: { "X-Session-Report": "/voice/sessions/a.b" } });
  assert.deepEqual(await requestGrant("/", csrfToken, signal), { grant: { sid: "s" }, reportTo: "/voice/sessions/a.b" });
  answers({ sid: "s" }, {});
  assert.equal((await requestGrant("/", csrfToken, signal)).reportTo, null);
});

test("a refusal says what the server said", async () => {
  answers({ message: "No place is free." }, { status: 429 });
  await assert.rejects(requestGrant("/", csrfToken, signal), { kind: "busy", serverMessage: "No place is free." });
});
