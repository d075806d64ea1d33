// From this page's server to a relay: the grant, and the WebTransport session that it opens.

import { after } from "../pause.js";
import { TransportFailure } from "./failure.js";

const DRAFT = "moqt-16";
const GRANT_TIMEOUT_MS = 10000;
const OPEN_TIMEOUT_MS = 1000; // four exchanges, of 250 ms each; from farther away, other transports are as good

/**
 * {grant, reportTo}: what the server gives at `url`, and where a session is reported that it passes on, else null; rejects
 * with a TransportFailure where it gives none. `csrfToken()` is the page's.
 */
export async function requestGrant(url, csrfToken, signal) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { Accept: "application/json", "X-CSRFToken": await csrfToken() },
      signal: AbortSignal.any([signal, AbortSignal.timeout(GRANT_TIMEOUT_MS)]),
    });
  } catch (error) {
    throw new TransportFailure("unreachable", error.message);
  }
  if (!response.ok) {
    const { message } = await response.json().catch(() => ({}));
    throw new TransportFailure([429, 503].includes(response.status) ? "busy" : "refused", `The server answered ${response.status}.`, message);
  }
  return { grant: await response.json(), reportTo: response.headers.get("X-Session-Report") };
}

/** A WebTransport session with one of the grant's relays; rejects with a TransportFailure where it is not reached. */
export async function openRelay({ endpoint, port }, grant, query, signal, patienceMs = OPEN_TIMEOUT_MS) {
  const { sid, aoqTokenForClient: token, clientRelayCertFingerprint: fingerprint } = grant;
  const host = endpoint.includes(":") ? `[${endpoint}]` : endpoint;
  const pinned = fingerprint ? { serverCertificateHashes: [{ algorithm: "sha-256", value: fromHex(fingerprint) }] } : {};
  const options = /** @type {WebTransportOptions} */ ({ ...pinned, protocols: [DRAFT], congestionControl: "low-latency" });
  const web = new WebTransport(`https://${host}:${port}/aoq/${sid}?${new URLSearchParams({ ...query, jwt: token })}`, options);
  web.closed.catch(() => {}); // told where it is awaited
  const isOpen = await Promise.race([web.ready.then(() => true, () => false), after(patienceMs, false)]);
  if (!isOpen || signal.aborted || web.protocol !== DRAFT) {
    web.close();
    throw new TransportFailure("no_path", isOpen ? `The relay does not speak ${DRAFT}.` : "No relay was reached.");
  }
  return web;
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
