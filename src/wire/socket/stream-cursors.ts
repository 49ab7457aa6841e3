/**
 * A place in a stream, and which stream: a session's by the ordinal that is given once, the gateway's by 0, both under the name of
 * what the store remembers. A session that is not there has 0 too: whatever comes of it is behind that place.
 */
export type StreamPlace = { kind: "session" | "gateway"; epoch: string; ordinal: number; seq: number };

const FORM = /^([sg])\.([\w-]{1,40})\.(\d{1,16})\.(\d{1,16})$/;

/** The place as clients keep it: base64url, opaque to them. */
export const cursorOf = (kind: StreamPlace["kind"], epoch: string, ordinal: number, seq: number): string =>
  Buffer.from(`${kind === "session" ? "s" : "g"}.${epoch}.${ordinal}.${seq}`).toString("base64url");

/** Undefined for what we never gave. */
export const placeOfCursor = (cursor: string): StreamPlace | undefined => {
  const found = FORM.exec(Buffer.from(cursor, "base64url").toString("latin1"));
  if (!found) return undefined;
  const [, kind, epoch = "", ordinal, seq] = found;
  return { kind: kind === "s" ? "session" : "gateway", epoch, ordinal: Number(ordinal), seq: Number(seq) };
};
