import { writeFile } from "node:fs/promises";
import { createOpenAI } from "@ai-sdk/openai";
import { embed, experimental_generateSpeech as generateSpeech, streamText } from "ai";

const openai = createOpenAI({ baseURL: "http://localhost:8000/v1", apiKey: "sk-…" });

const { textStream } = streamText({ model: openai.chat("assistant"), prompt: "How many miles are ten kilometres?" });
for await (const piece of textStream) process.stdout.write(piece);
console.log(); // prints: 10 kilometres are about 6.21 miles.

const { embedding } = await embed({ model: openai.embedding("text-embedding-3-small"), value: "The kettle is boiling." });
console.log(embedding.length, "dimensions"); // prints: dimensions

const { audio } = await generateSpeech({ model: openai.speech("hibari"), voice: "woman", text: "The kettle is boiling." });
await writeFile("reply.mp3", audio.uint8Array);
