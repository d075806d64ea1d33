// A spoken turn with `@openai/agents-realtime`: address, key, recording and model are arguments, what came of it is printed.
import { readFile } from "node:fs/promises";
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession } from "@openai/agents-realtime";

const [address, apiKey, recording, model] = process.argv.slice(2);
const HEADER = 44;
const PIECE = 4800;
const noted = { heard: "", words: "", sound_ms: 0, problems: [] };
const agent = new RealtimeAgent({ name: "Assistant" });
const transport = new OpenAIRealtimeWebSocket({ url: `ws://${address}/v1/realtime?model=${model}` });
const session = new RealtimeSession(agent, { transport });
transport.on("*", ({ type }) => {
  let isRead = type === "error";
  const read = () => { isRead = true; };
  transport.once(type, read);
  queueMicrotask(() => { // an event that its schema does not fit is passed on by no other name
    transport.off(type, read);
    if (!isRead) noted.problems.push(`unreadable: ${type}`);
  });
});
session.on("error", ({ error }) => noted.problems.push(JSON.stringify(error)));
session.on("audio", (event) => { noted.sound_ms += event.data.byteLength / 48; });
transport.on("audio_transcript_delta", (event) => { noted.words += event.delta; });
transport.on("conversation.item.input_audio_transcription.completed", (event) => { noted.heard = event.transcript; });
session.on("agent_end", () => {
  console.log(JSON.stringify(noted));
  session.close();
});
await session.connect({ apiKey });
const sound = (await readFile(recording)).subarray(HEADER);
for (let start = 0; start < sound.length; start += PIECE) {
  const piece = sound.subarray(start, start + PIECE);
  session.sendAudio(piece.buffer.slice(piece.byteOffset, piece.byteOffset + piece.length));
}
