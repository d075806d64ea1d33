// Listens in to an open conversation: plays what the server streams of it, the caller on the left, the assistant on the right.
const RATE_HZ = 16000;
const FRAME_BYTES = 4;
const LEAD_S = 0.3; // pieces of sound come five times a second
const MOST_AHEAD_S = 3; // beyond it, the browser was held up: it leaves sound out to catch up

const place = /** @type {HTMLElement} */ (document.querySelector("#listen"));
const button = place.querySelector("button");
const told = place.querySelector("output");
/** @type {AbortController | null} */
let running = null;

/** Play pieces of 16-bit samples, of both sides in turn, one behind the other. */
class Player {
  #context = new AudioContext();
  #at = 0;

  play(bytes) {
    const samples = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
    const { currentTime } = this.#context;
    if (!samples.length || this.#at > currentTime + MOST_AHEAD_S) return;
    const sound = this.#context.createBuffer(2, samples.length / 2, RATE_HZ);
    for (const side of [0, 1]) {
      sound.getChannelData(side).forEach((_, index, channel) => {
        channel[index] = samples[2 * index + side] / 32768;
      });
    }
    const source = new AudioBufferSourceNode(this.#context, { buffer: sound });
    source.connect(this.#context.destination);
    this.#at = this.#at > currentTime ? this.#at : currentTime + LEAD_S;
    source.start(this.#at);
    this.#at += sound.duration;
  }

  close() {
    this.#context.close();
  }
}

async function listen(signal) {
  const player = new Player(); // within the click, or it stays silent
  try {
    const response = await fetch(place.dataset.url, { method: "POST", headers: { "X-CSRFToken": place.dataset.token }, signal });
    if (!response.ok) return response.status === 409 ? await response.text() : `Refused (${response.status}). Load the page again.`;
    told.value = "You hear the conversation, about a second late.";
    const reader = response.body.getReader();
    let rest = new Uint8Array();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const bytes = new Uint8Array([...rest, ...piece.value]);
      const whole = bytes.length - (bytes.length % FRAME_BYTES);
      player.play(bytes.subarray(0, whole));
      rest = bytes.slice(whole);
    }
    return "Listening in has ended.";
  } catch {
    return signal.aborted ? "You no longer listen in." : "The connection was lost.";
  } finally {
    player.close();
  }
}

button.addEventListener("click", async () => {
  if (running) {
    running.abort();
    return;
  }
  running = new AbortController();
  const label = button.lastElementChild;
  const words = label.textContent;
  label.textContent = "Stop listening";
  told.value = "Asking …";
  told.value = await listen(running.signal);
  label.textContent = words;
  running = null;
});
