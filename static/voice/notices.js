// Every problem that the page can show, by its code: what is wrong, and what to do.

import { t } from "./words.js";

/**
 * - `action`: what main.js does when the button is pressed; `alternative` is another button, which only closes the
 *   notice unless it has an `alternativeAction`.
 * - `lastsMs`: the notice disappears by itself.
 * - `offersCheck`: a link to the connection check stands beside the buttons.
 * - `isNews`: the notice informs; it does not report an error.
 * - `isPlain`: show `text` instead of the server's own message, which is written for developers and stands in the events.
 */
export const NOTICES = {
  insecure: {
    title: t("The microphone needs a secure address"),
    text: t("Browsers allow the microphone only on https:// addresses and on localhost. Open this page with https, or type instead."),
    label: t("Type instead"),
    action: "type",
  },
  unsupported: {
    title: t("This browser cannot carry live audio"),
    text: t("Use a current version of Firefox, Chrome, Edge or Safari."),
    label: t("Close"),
    action: "dismiss",
  },
  microphone_denied: {
    title: t("The microphone is blocked"),
    text: t("Allow it for this page next to the address bar, then try again. You can also type."),
    label: t("Try again"),
    action: "retry",
  },
  microphone_missing: {
    title: t("No microphone found"),
    text: t("Connect a microphone and try again, or type: the replies are spoken all the same."),
    label: t("Try again"),
    action: "retry",
    alternative: t("Type instead"),
    alternativeAction: "type",
    offersCheck: true,
  },
  microphone_busy: {
    title: t("The microphone is in use"),
    text: t("Another program uses it. Close that program, then try again."),
    label: t("Try again"),
    action: "retry",
  },
  microphone_found: {
    title: t("A microphone is connected"),
    text: t("You can talk now."),
    label: t("Try again"),
    action: "retry",
    isNews: true,
  },
  microphone_lost: {
    title: t("The microphone was disconnected"),
    text: t("The conversation goes on. You can type, or choose another microphone."),
    label: t("Use another one"),
    action: "microphone",
  },
  models_missing: {
    title: t("The server is not ready"),
    text: t("The voice models are not on this server yet."),
    label: t("Try again"),
    action: "retry",
  },
  not_ready: {
    title: t("The server is not ready"),
    text: t("Try again in a moment."),
    label: t("Try again"),
    action: "retry",
  },
  unreachable: {
    title: t("The server cannot be reached"),
    text: t("Check your network connection, then try again. The server may be down."),
    label: t("Try again"),
    action: "retry",
  },
  refused: {
    title: t("The conversation could not begin"),
    text: t("The server ended the connection before the conversation began. It may have too many conversations open; try again in a moment."),
    label: t("Try again"),
    action: "retry",
    offersCheck: true,
  },
  no_path: {
    title: t("No route for the audio"),
    text: t("This model can only be reached over WebRTC, which your network blocks. Try another network, or choose another model in Settings."),
    label: t("Try again"),
    action: "retry",
    offersCheck: true,
  },
  no_udp: {
    title: t("Connected over WebSocket"),
    text: t("Your network blocks WebRTC, so the audio takes another route. You need not do anything."),
    label: t("Close"),
    action: "dismiss",
    isNews: true,
    offersCheck: true,
  },
  no_webrtc: {
    title: t("Connected over WebSocket"),
    text: t("The server did not accept WebRTC, so the audio takes another route. You need not do anything."),
    label: t("Close"),
    action: "dismiss",
    isNews: true,
    offersCheck: true,
  },
  connection_lost: {
    title: t("The connection is lost"),
    text: t("This page keeps trying to connect again. Until then you are not heard, and what you type is sent afterwards."),
    label: t("Try now"),
    action: "hurry",
    isNews: true,
    offersCheck: true,
  },
  not_heard: {
    title: t("You were not heard"),
    text: t("The connection was lost while you were speaking. Please say it again."),
    label: t("Close"),
    action: "dismiss",
    isNews: true,
  },
  other_tab: {
    title: t("Another tab is talking"),
    text: t("Two tabs would hear each other. Which one do you want to use?"),
    label: t("Talk here"),
    action: "talk-here",
    alternative: t("Leave it there"),
    isNews: true,
  },
  moved: {
    title: t("The conversation moved"),
    text: t("Another tab of this browser talks now."),
    label: t("Talk here"),
    action: "talk-here",
    alternative: t("Leave it there"),
    isNews: true,
  },
  reloaded: {
    title: t("The page was loaded again"),
    text: t("Your conversation is still here. The assistant hears you again when you go on."),
    label: t("Go on"),
    action: "retry",
    isNews: true,
  },
  guest_limit: {
    title: t("No more conversations for now"),
    text: t("Guests may begin only a certain number of conversations an hour. Sign in, or come back later."),
    label: t("Sign in"),
    action: "login",
  },
  approval: {
    title: t("Allow “{tool}”?"),
    text: t("The assistant wants to use this tool of “{server}”. It has not been used yet."),
    label: t("Allow"),
    action: "allow",
    alternative: t("Deny"),
    alternativeAction: "deny",
    isNews: true,
  },
  session_ending: {
    title: t("{left} left"),
    text: t("Then this conversation is over. Its words stay on this page, and you can go on from them."),
    label: t("Close"),
    action: "dismiss",
    isNews: true,
    lastsMs: 20000,
  },
  session_over: {
    title: t("{length} are over"),
    text: t("This is how long a conversation may last here. Its words stay on this page. Press “Go on” to continue it."),
    label: t("Go on"),
    action: "retry",
    isNews: true,
    isPlain: true,
  },
  signed_out: {
    title: t("Please sign in"),
    text: t("Only people with an account can talk here."),
    label: t("Sign in"),
    action: "login",
  },
  not_allowed: {
    title: t("You cannot talk here yet"),
    text: t("You, or guests, may not talk here. Ask the operator of this server."),
    label: t("Try again"),
    action: "retry",
  },
  autoplay_blocked: {
    title: t("Tap to hear"),
    text: t("The browser plays sound only after a tap."),
    label: t("Tap to hear"),
    action: "unblock",
    isNews: true,
  },
  echo: {
    title: t("The assistant hears itself"),
    text: t("The microphone picks up the loudspeaker. Use headphones, or switch on push to talk."),
    label: t("Push to talk"),
    action: "push-to-talk",
    alternative: t("Close"),
    isNews: true,
    lastsMs: 20000,
  },
  reply_failed: {
    title: t("The reply failed"),
    text: t("The assistant could not finish its reply. Ask again in a moment."),
    label: t("Close"),
    action: "dismiss",
    isPlain: true,
  },
  server_error: {
    title: t("The server refused a request"),
    text: t("The conversation goes on."),
    label: t("Close"),
    action: "dismiss",
  },
};
