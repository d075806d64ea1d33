import assert from "node:assert/strict";
import { test } from "node:test";
import { Recording } from "../../../static/voice/audio/recording.js";

function channels(wav) {
  const view = new DataView(wav.buffer);
  const frames = view.getUint32(40, true) / 4;
  return [0, 1].map((channel) => Int16Array.from({ length: frames }, (_, index) => view.getInt16(44 + index * 4 + channel * 2, true)));
}

test("microphone and loudspeaker lie side by side, each where it was heard", () => {
  const recording = new Recording();
  assert.ok(recording.isEmpty);
  recording.addMicrophone(new Int16Array(1600).fill(1000), 10.1); // heard from 10.0 to 10.1 s
  for (let block = 0; block < 100; block += 1) {
    recording.addSpeaker(new Float32Array(480).fill(0.5), 48000, 11 + block * 0.01);
  }
  const [left, right] = channels(recording.toWav());
  assert.equal(left.findIndex((sample) => sample !== 0), 0);
  assert.equal(left.findLastIndex((sample) => sample !== 0), 1599);
  assert.ok(Math.abs(right.findIndex((sample) => Math.abs(sample) > 8000) - 16000) < 40);
  assert.ok(Math.abs(right.length - 32000) < 100);
  assert.ok(Math.abs(right[24000] - 16383) < 50);
});
