// Why a transport did not come up.

/** Close code of a connection whose session may go on over another one. */
export const GOES_ON_ELSEWHERE = 4013;

/**
 * `kind` is "unreachable" (nobody answered), "busy" (not now: another transport would be told the same), "refused"
 * (somebody answered no) or "no_path" (they agreed, but nothing gets through: this network carries no UDP, say).
 * `serverMessage` is the sentence in which the server refused, if it did.
 */
export class TransportFailure extends Error {
  /** With which a relay closed the connection, if it did. */
  closeCode = 0;

  constructor(kind, message, serverMessage = "") {
    super(message);
    this.kind = kind;
    this.serverMessage = serverMessage;
  }
}

/** Why a connection that was up did not become a session: by the event in which the server said so, or null. */
export function closedEarly(closing) {
  return closing && new TransportFailure("refused", "It closed before the session began.", closing.reason);
}
