// Every problem that the page can show, by its code: what is wrong, and what to do.

/**
 * - `action`: what main.js does when the button is pressed; `alternative` is another button, which only closes the
 *   notice unless it has an `alternativeAction`.
 * - `lastsMs`: the notice disappears by itself.
 * - `isNews`: the notice informs; it does not report an error.
 * - `isPlain`: show `text` instead of the server's own message, which is written for developers and stands in the events.
 */
export const NOTICES = {
  insecure: {
    title: "The microphone needs a secure address",
    text: "Browsers allow the microphone only on https:// addresses and on localhost. Open this page with https, or type instead.",
    label: "Type instead",
    action: "type",
  },
  unsupported: {
    title: "This browser cannot carry live audio",
    text: "Use a current version of Firefox, Chrome, Edge or Safari.",
    label: "Close",
    action: "dismiss",
  },
  microphone_denied: {
    title: "The microphone is blocked",
    text: "Allow it for this page next to the address bar, then try again. You can also type.",
    label: "Try again",
    action: "retry",
  },
  microphone_missing: {
    title: "No microphone found",
    text: "Connect a microphone and try again, or type: the replies are spoken all the same.",
    label: "Try again",
    action: "retry",
    alternative: "Type instead",
    alternativeAction: "type",
  },
  microphone_busy: {
    title: "The microphone is in use",
    text: "Another program uses it. Close that program, then try again.",
    label: "Try again",
    action: "retry",
  },
  microphone_lost: {
    title: "The microphone was disconnected",
    text: "The conversation goes on. You can type, or choose another microphone.",
    label: "Use another one",
    action: "microphone",
  },
  models_missing: {
    title: "The server is not ready",
    text: "The voice models are not on this server yet.",
    label: "Try again",
    action: "retry",
  },
  not_ready: {
    title: "The server is not ready",
    text: "Try again in a moment.",
    label: "Try again",
    action: "retry",
  },
  unreachable: {
    title: "The server cannot be reached",
    text: "Check your network connection, then try again. The server may be down.",
    label: "Try again",
    action: "retry",
  },
  refused: {
    title: "The conversation could not begin",
    text: "The server ended the connection before the conversation began. It may have too many conversations open; try again in a moment.",
    label: "Try again",
    action: "retry",
  },
  no_path: {
    title: "No route for the audio",
    text: "This model can only be reached over WebRTC, which your network blocks. Try another network, or choose another model in Settings.",
    label: "Try again",
    action: "retry",
  },
  no_udp: {
    title: "Connected over WebSocket",
    text: "Your network blocks WebRTC, so the audio takes another route. You need not do anything.",
    label: "Close",
    action: "dismiss",
    isNews: true,
  },
  no_webrtc: {
    title: "Connected over WebSocket",
    text: "The server did not accept WebRTC, so the audio takes another route. You need not do anything.",
    label: "Close",
    action: "dismiss",
    isNews: true,
  },
  connection_lost: {
    title: "The connection is lost",
    text: "This page keeps trying to connect again. Until then you are not heard, and what you type is sent afterwards.",
    label: "Try now",
    action: "hurry",
    isNews: true,
  },
  not_heard: {
    title: "You were not heard",
    text: "The connection was lost while you were speaking. Please say it again.",
    label: "Close",
    action: "dismiss",
    isNews: true,
  },
  other_tab: {
    title: "Another tab is talking",
    text: "Two tabs would hear each other. Which one do you want to use?",
    label: "Talk here",
    action: "talk-here",
    alternative: "Leave it there",
    isNews: true,
  },
  moved: {
    title: "The conversation moved",
    text: "Another tab of this browser talks now.",
    label: "Talk here",
    action: "talk-here",
    alternative: "Leave it there",
    isNews: true,
  },
  reloaded: {
    title: "The page was loaded again",
    text: "Your conversation is still here. The assistant hears you again when you go on.",
    label: "Go on",
    action: "retry",
    isNews: true,
  },
  guest_limit: {
    title: "No more conversations for now",
    text: "Guests may begin only a certain number of conversations an hour. Sign in, or come back later.",
    label: "Sign in",
    action: "login",
  },
  session_over: {
    title: "Time is up",
    isNews: true,
    text: "This conversation has reached its time limit. Its words stay on this page. Press “Go on” to continue it.",
    label: "Go on",
    action: "retry",
  },
  signed_out: {
    title: "Please sign in",
    text: "Only people with an account can talk here.",
    label: "Sign in",
    action: "login",
  },
  not_allowed: {
    title: "You cannot talk here yet",
    text: "",
    label: "Try again",
    action: "retry",
  },
  autoplay_blocked: {
    title: "Tap to hear",
    text: "The browser plays sound only after a tap.",
    label: "Tap to hear",
    action: "unblock",
    isNews: true,
  },
  echo: {
    title: "The assistant hears itself",
    text: "The microphone picks up the loudspeaker. Use headphones, or switch on push to talk.",
    label: "Push to talk",
    action: "push-to-talk",
    alternative: "Close",
    isNews: true,
    lastsMs: 20000,
  },
  reply_failed: {
    title: "The reply failed",
    text: "The assistant could not finish its reply. Ask again in a moment.",
    label: "Close",
    action: "dismiss",
    isPlain: true,
  },
  server_error: {
    title: "The server refused a request",
    text: "The conversation goes on.",
    label: "Close",
    action: "dismiss",
  },
};
