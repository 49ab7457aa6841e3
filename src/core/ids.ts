import { randomFillSync } from "node:crypto";

export type IdPrefix = "msg" | "turn" | "evt" | "dlv" | "key" | "req" | "chat" | "cmp" | "node";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const PAIRS = Array.from({ length: 1024 }, (_, n) => ALPHABET.charAt(n >> 5) + ALPHABET.charAt(n & 31));
const pair = (n: number): string => PAIRS[n & 1023] as string;

// Random words come in batches: a call for each id would cost more than the rest of it.
const pool = new Uint16Array(2048);
let used = pool.length;
const word = (): number => {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++] as number;
};

let lastMs = -1;
let timePart = "";
const encodeTime = (ms: number): string => {
  if (ms !== lastMs) {
    lastMs = ms;
    const high = Math.floor(ms / 2 ** 20);
    timePart = pair(high >> 20) + pair(high >> 10) + pair(high) + pair(ms >>> 10) + pair(ms);
  }
  return timePart;
};

/** A new id: the prefix, 48 bits of time and 80 random bits in Crockford's base 32. Sorts by time as text. */
export const newId = <P extends IdPrefix>(prefix: P, now: number): `${P}_${string}` =>
  // Added up, as a template asks each part to become a string first.
  (prefix +
    "_" +
    encodeTime(now) +
    pair(word()) +
    pair(word()) +
    pair(word()) +
    pair(word()) +
    pair(word()) +
    pair(word()) +
    pair(word()) +
    pair(word())) as `${P}_${string}`;

/** A new bare id, for names that have a prefix of their own (`chat:<id>`, `webhook:<id>`). */
export const newBareId = (now: number): string => newId("msg", now).slice(4);
