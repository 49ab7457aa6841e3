const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;
const LONGEST = 256;
const ZEROS = /^0+$/;

/**
 * The trace that a caller's `traceparent` names (W3C Trace Context), for the access line; undefined where it is absent or wrong. Versions
 * after 00 are read as 00, as W3C asks.
 */
export const traceIdOf = (traceparent: string | undefined): string | undefined => {
  if (traceparent === undefined || traceparent.length > LONGEST) return undefined;
  const [, version, traceId = "", parentId = "", rest] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  return ZEROS.test(traceId) || ZEROS.test(parentId) ? undefined : traceId || undefined;
};
