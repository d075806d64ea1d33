// A typed and a spoken turn with the realtime client of `qwen-audio-agent`, which its variables lead to this server.
import { readFile } from "node:fs/promises";
import { resolveRealtimeProvider, RealtimeFrontend } from "./node_modules/qwen-audio-agent/server/src/voice/realtime-provider.mjs";

const HEADER = 44;
const PIECE = 3200;
const noted = { heard: "", words: "", called: [], sound_ms: 0, problems: [], typed: "" };
const ended = [Promise.withResolvers(), Promise.withResolvers()];
let turn = 0;
const frontend = new RealtimeFrontend({
  provider: resolveRealtimeProvider("dashscope"),
  onError: (error) => noted.problems.push(error.message),
  onEvent: (event) => {
    if (event.type === "error") noted.problems.push(event.error.message);
    if (event.type === "conversation.item.input_audio_transcription.completed") noted.heard = event.transcript;
    if (event.type === "response.audio_transcript.delta") noted[turn ? "words" : "typed"] += event.delta;
    if (event.type === "response.function_call_arguments.done") noted.called.push(event.name);
    if (event.type === "response.audio.delta") noted.sound_ms += Buffer.from(event.delta, "base64").length / 48;
    if (event.type === "response.done") ended[turn].resolve();
  },
});
await frontend.connect();
await frontend.sendUserText("What is two plus two?");
await ended[0].promise;
turn = 1;
const sound = (await readFile(process.argv[2])).subarray(HEADER);
for (let start = 0; start < sound.length; start += PIECE) {
  frontend.appendAudio(sound.subarray(start, start + PIECE).toString("base64"));
}
await ended[1].promise;
console.log(JSON.stringify(noted));
process.exit(0);
