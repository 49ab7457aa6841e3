const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const LONGEST = 256;
const ZEROS = /^0+$/;
const SAMPLED = 1;

/** The place in a caller's trace at which a call belongs. */
export type TraceContext = { traceId: string; parentId: string; sampled: boolean };

/**
 * The trace of a caller's `traceparent` (W3C Trace Context); undefined if it is absent or invalid. Versions after 00 are read as 00, as W3C requires.
 */
export function traceContextOf(traceparent: string | undefined): TraceContext | undefined {
  if (traceparent === undefined || traceparent.length > LONGEST) return undefined;
  const [, version, traceId = "", parentId = "", flags = "", rest] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return undefined;
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

/** The id of that trace, for the access line. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceContextOf(traceparent)?.traceId;
}
