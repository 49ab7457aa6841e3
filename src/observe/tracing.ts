import { randomFillSync } from "node:crypto";

/** Where a request stands in its distributed trace (W3C Trace Context). */
export interface Trace {
  traceId: string;
  /** Our own span. */
  spanId: string;
  /** The caller's span; undefined where the trace begins here. */
  parentId: string | undefined;
  sampled: boolean;
}

const header = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const LONGEST = 256;
const zeros = /^0+$/;

const pool = Buffer.alloc(4096);
let used = pool.length;

/** Random bytes in hex; the pool is filled 4 KiB at a time, as a call for each id would cost more than the rest. */
const randomHex = (bytes: number): string => {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const text = pool.toString("hex", used, used + bytes);
  used += bytes;
  return zeros.test(text) ? randomHex(bytes) : text;
};

/** The trace that a `traceparent` names, or undefined where it is absent or wrong. Versions after 00 are read as 00, as W3C asks. */
export const parseTraceparent = (value: string | undefined): Omit<Trace, "spanId"> | undefined => {
  if (value === undefined || value.length > LONGEST) return undefined;
  const [, version, traceId, parentId, flags, rest] = header.exec(value) ?? [];
  if (version === undefined || traceId === undefined || parentId === undefined || flags === undefined) return undefined;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (zeros.test(traceId) || zeros.test(parentId)) return undefined;
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
};

/** The trace of a request: the caller's where it sent one, else a new one. */
export const childTrace = (traceparent: string | undefined): Trace => {
  const caller = parseTraceparent(traceparent);
  return {
    traceId: caller?.traceId ?? randomHex(16),
    spanId: randomHex(8),
    parentId: caller?.parentId,
    sampled: caller?.sampled ?? false, // we keep no spans, so a trace that begins here promises none
  };
};

/** The header for who is called next: our span is its parent. */
export const traceparentOf = ({ traceId, spanId, sampled }: Trace): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
