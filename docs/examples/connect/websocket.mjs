// Runs as it is: node websocket.mjs (Node 22 or newer), deno, bun. In a page, a client secret stands in for the key.
const url = "ws://localhost:8000/v1/realtime?model=voice";
const socket = new WebSocket(url, ["realtime", "openai-insecure-api-key.sk-…"]);

let bytes = 0;
socket.onmessage = ({ data }) => {
  const event = JSON.parse(data);
  if (event.type === "session.created") {
    const content = [{ type: "input_text", text: "What is two plus two?" }];
    socket.send(JSON.stringify({ type: "conversation.item.create", item: { type: "message", role: "user", content } }));
    socket.send(JSON.stringify({ type: "response.create" }));
  } else if (event.type === "response.output_audio_transcript.delta") {
    console.log(event.delta); // prints: 2 plus 2 is 4.
  } else if (event.type === "response.output_audio.delta") {
    bytes += event.delta.length * 0.75; // 16 bit PCM, mono, 24 kHz
  } else if (event.type === "response.done") {
    console.log(`${(bytes / 48000).toFixed(1)} seconds`);
    socket.close();
  } else if (event.type === "error") {
    throw new Error(event.error.message);
  }
};
socket.onerror = () => console.error("The connection was refused: check the address and the key.");
