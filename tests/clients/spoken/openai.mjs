// A spoken turn with `openai` for JavaScript: address, key, recording and model are arguments, what came of it is printed.
import { readFile } from "node:fs/promises";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const [address, apiKey, recording, model] = process.argv.slice(2);
const HEADER = 44;
const PIECE = 4800;
const noted = { heard: "", words: "", sound_ms: 0, problems: [] };
const client = new OpenAI({ baseURL: `https://${address}/v1`, apiKey });
const connection = await OpenAIRealtimeWS.create(client, { model });
connection.on("error", (error) => noted.problems.push(error.message));
connection.on("conversation.item.input_audio_transcription.completed", (event) => { noted.heard = event.transcript; });
connection.on("response.output_audio_transcript.delta", (event) => { noted.words += event.delta; });
connection.on("response.output_audio.delta", (event) => { noted.sound_ms += Buffer.from(event.delta, "base64").length / 48; });
connection.on("response.done", () => {
  console.log(JSON.stringify(noted));
  connection.close();
});
const sound = (await readFile(recording)).subarray(HEADER);
connection.on("session.created", () => {
  for (let start = 0; start < sound.length; start += PIECE) {
    const audio = sound.subarray(start, start + PIECE).toString("base64");
    connection.send({ type: "input_audio_buffer.append", audio });
  }
});
