// Names and constructors of the realtime dialect; mirrors voiceapp/protocol/wire/events.py (a test compares them).

export const CLIENT = Object.freeze({
  SESSION_UPDATE: "session.update",
  AUDIO_APPEND: "input_audio_buffer.append",
  AUDIO_COMMIT: "input_audio_buffer.commit",
  AUDIO_CLEAR: "input_audio_buffer.clear",
  IMAGE_APPEND: "input_image_buffer.append",
  ITEM_CREATE: "conversation.item.create",
  ITEM_RETRIEVE: "conversation.item.retrieve",
  ITEM_DELETE: "conversation.item.delete",
  ITEM_TRUNCATE: "conversation.item.truncate",
  RESPONSE_CREATE: "response.create",
  RESPONSE_CANCEL: "response.cancel",
  REMINDERS_RESTORE: "session.reminders.restore",
  SESSION_FINISH: "session.finish",
});

export const SERVER = Object.freeze({
  ERROR: "error",
  SESSION_CREATED: "session.created",
  SESSION_UPDATED: "session.updated",
  SESSION_RESUMABLE: "session.resumable",
  SESSION_RESUMED: "session.resumed",
  SESSION_FINISHED: "session.finished",
  REMINDERS_UPDATED: "session.reminders.updated",
  SESSION_CLOSING: "session.closing",
  SPEECH_STARTED: "input_audio_buffer.speech_started",
  SPEECH_STOPPED: "input_audio_buffer.speech_stopped",
  IDLE_TIMEOUT: "input_audio_buffer.timeout_triggered",
  AUDIO_COMMITTED: "input_audio_buffer.committed",
  AUDIO_CLEARED: "input_audio_buffer.cleared",
  ITEM_CREATED: "conversation.item.created",
  ITEM_RETRIEVED: "conversation.item.retrieved",
  ITEM_DELETED: "conversation.item.deleted",
  ITEM_TRUNCATED: "conversation.item.truncated",
  TRANSCRIPTION_DELTA: "conversation.item.input_audio_transcription.delta",
  TRANSCRIPTION_COMPLETED: "conversation.item.input_audio_transcription.completed",
  TRANSCRIPTION_FAILED: "conversation.item.input_audio_transcription.failed",
  RESPONSE_CREATED: "response.created",
  OUTPUT_ITEM_ADDED: "response.output_item.added",
  OUTPUT_ITEM_DONE: "response.output_item.done",
  CONTENT_PART_ADDED: "response.content_part.added",
  CONTENT_PART_DONE: "response.content_part.done",
  TEXT_DELTA: "response.text.delta",
  TEXT_DONE: "response.text.done",
  AUDIO_TRANSCRIPT_DELTA: "response.audio_transcript.delta",
  AUDIO_TRANSCRIPT_DONE: "response.audio_transcript.done",
  AUDIO_DELTA: "response.audio.delta",
  AUDIO_WORDS: "response.audio.words",
  AUDIO_DONE: "response.audio.done",
  AUDIO_DUCKED: "response.audio.ducked",
  AUDIO_RESTORED: "response.audio.restored",
  FUNCTION_ARGUMENTS_DELTA: "response.function_call_arguments.delta",
  FUNCTION_ARGUMENTS_DONE: "response.function_call_arguments.done",
  MCP_LIST_BEGUN: "mcp_list_tools.in_progress",
  MCP_LIST_COMPLETED: "mcp_list_tools.completed",
  MCP_LIST_FAILED: "mcp_list_tools.failed",
  MCP_ARGUMENTS_DONE: "response.mcp_call_arguments.done",
  MCP_CALL_BEGUN: "response.mcp_call.in_progress",
  MCP_CALL_COMPLETED: "response.mcp_call.completed",
  MCP_CALL_FAILED: "response.mcp_call.failed",
  SOURCE_ADDED: "response.source.added",
  RESPONSE_DONE: "response.done",
});

/** A new random identifier such as `item_3f…`. */
export function identifier(prefix) {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `${prefix}_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function event(type, fields = {}) {
  return { type, event_id: identifier("event"), ...fields };
}

export const sessionUpdate = (session) => event(CLIENT.SESSION_UPDATE, { session });
export const audioAppend = (audio) => ({ type: CLIENT.AUDIO_APPEND, audio });
export const audioCommit = () => event(CLIENT.AUDIO_COMMIT);
export const audioClear = () => event(CLIENT.AUDIO_CLEAR);
export const itemDelete = (itemId) => event(CLIENT.ITEM_DELETE, { item_id: itemId });
export const itemTruncate = (itemId, audioEndMs) =>
  event(CLIENT.ITEM_TRUNCATE, { item_id: itemId, content_index: 0, audio_end_ms: audioEndMs });
export const responseCreate = (response) => event(CLIENT.RESPONSE_CREATE, response ? { response } : {});
export const responseCancel = () => event(CLIENT.RESPONSE_CANCEL);
export const remindersRestore = (reminders) => event(CLIENT.REMINDERS_RESTORE, { reminders });
export const sessionFinish = () => event(CLIENT.SESSION_FINISH);

export const approvalCreate = (requestId, approve) =>
  event(CLIENT.ITEM_CREATE, { item: { type: "mcp_approval_response", approval_request_id: requestId, approve } });

/** A message in words, from either side; it keeps the id we choose. */
export const messageCreate = (itemId, role, text) =>
  event(CLIENT.ITEM_CREATE, {
    item: {
      id: itemId,
      type: "message",
      role,
      content: [{ type: role === "assistant" ? "text" : "input_text", text }],
    },
  });
