import assert from "node:assert/strict";
import { test } from "node:test";
import { linkQuality } from "../../../static/voice/transports/quality.js";

const PAIR = { type: "candidate-pair", id: "p", nominated: true, state: "succeeded", currentRoundTripTime: 0.0421 };

test("nothing is known before anything was measured", () => {
  assert.deepEqual(linkQuality([]), { rttMs: null, lossShare: null, playoutMs: null });
});

test("the round trip is that of the pair in use", () => {
  const other = { ...PAIR, id: "q", currentRoundTripTime: 1 };
  const reports = [other, PAIR, { type: "transport", selectedCandidatePairId: "p" }];
  assert.equal(linkQuality(reports).rttMs, 42);
  assert.equal(linkQuality([{ ...other, nominated: false }, PAIR]).rttMs, 42);
});

test("the loss is that of the worse direction", () => {
  const inbound = { type: "inbound-rtp", kind: "audio", packetsReceived: 95, packetsLost: 5 };
  const outbound = { type: "remote-inbound-rtp", kind: "audio", fractionLost: 0.02 };
  assert.equal(linkQuality([inbound, outbound]).lossShare, 0.05);
  assert.equal(linkQuality([{ ...inbound, packetsLost: 0 }, outbound]).lossShare, 0.02);
});

test("duplicates, which count as less than none lost, are no gain", () => {
  const inbound = { type: "inbound-rtp", kind: "audio", packetsReceived: 95, packetsLost: -2 };
  assert.equal(linkQuality([inbound]).lossShare, 0);
});

test("a sound is on its way for half a round trip and its stay in the jitter buffer", () => {
  const inbound = { type: "inbound-rtp", kind: "audio", jitterBufferDelay: 4800, jitterBufferEmittedCount: 96000 };
  assert.equal(linkQuality([PAIR, inbound]).playoutMs, 71);
  assert.equal(linkQuality([inbound]).playoutMs, null);
});
