// Why a transport did not come up.

/**
 * `kind` is "unreachable" (nobody answered), "refused" (somebody answered no) or "no_path" (they agreed, but nothing
 * gets through: this network carries no UDP, say).
 */
export class TransportFailure extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}
