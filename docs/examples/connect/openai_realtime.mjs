import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const client = new OpenAI({ baseURL: "http://localhost:8000/v1", apiKey: "sk-…" });

const question = [{ role: "user", content: "How many miles are ten kilometres?" }];
const stream = await client.chat.completions.create({ model: "assistant", messages: question, stream: true });
for await (const piece of stream) process.stdout.write(piece.choices[0]?.delta.content ?? "");
console.log(); // prints: 10 kilometres are about 6.21 miles.

const connection = await OpenAIRealtimeWS.create(client, { model: "voice" });
let bytes = 0;
connection.on("error", (error) => { throw error; });
connection.on("response.output_audio.delta", (event) => { bytes += event.delta.length * 0.75; }); // PCM, 24 kHz
connection.on("response.output_audio_transcript.delta", (event) => process.stdout.write(event.delta));
connection.on("response.done", () => {
  console.log(` (${(bytes / 48000).toFixed(1)} seconds)`); // prints: 2 plus 2 is 4.
  connection.close();
});
connection.on("session.created", () => {
  const content = [{ type: "input_text", text: "What is two plus two?" }];
  connection.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  connection.send({ type: "response.create" });
});
