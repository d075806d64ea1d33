import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession } from "@openai/agents-realtime";

const agent = new RealtimeAgent({ name: "Assistant", instructions: "Be brief." });
const transport = new OpenAIRealtimeWebSocket({ url: "ws://localhost:8000/v1/realtime?model=voice" });
const session = new RealtimeSession(agent, { transport });

let bytes = 0;
session.on("error", ({ error }) => { throw error; });
session.on("audio", (event) => { bytes += event.data.byteLength; }); // PCM, mono, 24 kHz
transport.on("audio_transcript_delta", (event) => process.stdout.write(event.delta));
session.on("agent_end", () => {
  console.log(` (${(bytes / 48000).toFixed(1)} seconds)`); // prints: 2 plus 2 is 4.
  session.close();
});
await session.connect({ apiKey: "sk-…" });
session.sendMessage("What is two plus two?");
