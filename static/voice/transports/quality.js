// How good a peer connection is, from the browser's statistics. Pure, so that bare JavaScript tests it.

/**
 * {rttMs, lossShare, playoutMs} from the reports of getStats(), each null while unknown. The loss is that of the worse
 * direction: inbound over the whole call as we counted it, outbound as the server last told. `playoutMs` is how long a
 * sound is on its way: half a round trip, and the time it then waits in the browser's jitter buffer.
 */
export function linkQuality(reports) {
  const pair = activePair(reports);
  const inbound = inboundSound(reports);
  const outbound = reports.find(({ type, kind }) => type === "remote-inbound-rtp" && kind === "audio");
  const losses = [inboundLoss(inbound), outbound?.fractionLost].filter((share) => share !== undefined && share !== null);
  const rttS = pair?.currentRoundTripTime ?? outbound?.roundTripTime;
  const bufferS = inbound?.jitterBufferEmittedCount > 0 ? inbound.jitterBufferDelay / inbound.jitterBufferEmittedCount : undefined;
  return {
    rttMs: rttS === undefined ? null : Math.round(rttS * 1000),
    lossShare: losses.length > 0 ? Math.max(0, ...losses) : null,
    playoutMs: rttS === undefined || bufferS === undefined ? null : Math.round((rttS / 2 + bufferS) * 1000),
  };
}

/** How many packets of sound have come, from the reports of getStats(). */
export function packetsReceived(reports) {
  return inboundSound(reports)?.packetsReceived ?? 0;
}

function inboundSound(reports) {
  return reports.find(({ type, kind }) => type === "inbound-rtp" && kind === "audio");
}

function activePair(reports) {
  const transport = reports.find(({ type }) => type === "transport");
  const pairs = reports.filter(({ type }) => type === "candidate-pair");
  return (
    pairs.find(({ id }) => id === transport?.selectedCandidatePairId) ??
    pairs.find(({ nominated, state }) => nominated && state === "succeeded")
  );
}

function inboundLoss(inbound) {
  const total = (inbound?.packetsReceived ?? 0) + (inbound?.packetsLost ?? 0);
  return total > 0 ? Math.max(0, inbound.packetsLost) / total : null;
}
