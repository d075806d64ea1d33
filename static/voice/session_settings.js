// A session's settings on the wire: what the person chose, and what the server says it does.

const LONGEST_REST = 8000; // characters

/** Silence that ends a turn; between the two, the server judges by what was said. */
const PATIENCE_MS = { calm: 1500, quick: 350 };

/** The `session` of a session.update. `turnDetection` is the hands-free mode to go back to. */
export function chosenSettings(
  { voice, language, instructions, isPushToTalk, isSpoken, patience },
  { turnDetection, isSilent },
) {
  return {
    modalities: isSpoken && !isSilent ? ["text", "audio"] : ["text"],
    voice: voice || null,
    instructions,
    input_audio_transcription: { language: language || null },
    turn_detection: isPushToTalk ? null : withPatience(turnDetection, patience),
    interruptions: "duck",
    word_times: true,
    approves_tools: true, // guests are never asked
  };
}

/** `turnDetection` with the silence that a person's `patience` asks for; normal takes back an earlier wish only. */
function withPatience(turnDetection, patience) {
  return patience in PATIENCE_MS ? { ...turnDetection, silence_duration_ms: PATIENCE_MS[patience] } : turnDetection;
}

/** Sample rate of the assistant's audio. */
export function outputRateHz({ audio, output_audio_format: format }) {
  const nested = audio?.output?.format;
  return nested?.sample_rate ?? nested?.rate ?? { pcm8: 8000, pcm24: 24000 }[format] ?? 24000;
}

/**
 * How the server finds ends of turns by default. Only its type: naming its silence too would be asking for exactly
 * that silence, and the server could no longer judge for itself.
 */
export function defaultTurnDetection({ turn_detection: detection }) {
  return { type: detection?.type ?? "server_vad" };
}

/** The instructions for a reply that goes on where the loss of the connection cut another off, before `unheard`. */
export function continuation(instructions, unheard) {
  const request =
    "The connection was lost while you were speaking. The user heard your last message up to its end, and nothing after " +
    "it. Go on from there as if nothing had happened: do not greet, apologize or repeat what was heard.";
  const rest = unheard.trim() ? `You were about to say: ${unheard.trim().slice(0, LONGEST_REST)}` : "";
  return [instructions, request, rest].filter(Boolean).join("\n\n");
}
