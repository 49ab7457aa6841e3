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
  (prefix + "_" + newBareId(now)) as `${P}_${string}`;

/** A new bare id, for names that have a prefix of their own (`chat:<id>`, `webhook:<id>`). */
export const newBareId = (now: number): string =>
  encodeTime(now) + randomPart(word(), word(), word(), word(), word(), word(), word(), word());

/** One call makes one flat string: parts that are added up are put together again when they are first looked at. */
const randomPart = (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number): string =>
  String.fromCharCode(
    code(a >> 5),
    code(a),
    code(b >> 5),
    code(b),
    code(c >> 5),
    code(c),
    code(d >> 5),
    code(d),
    code(e >> 5),
    code(e),
    code(f >> 5),
    code(f),
    code(g >> 5),
    code(g),
    code(h >> 5),
    code(h),
  );
const CODES = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const code = (n: number): number => CODES[n & 31] as number;

/**
 * The id of another kind that belongs to the same request: it has the same time and random part, so that people see it, too. A new one
 * where that of the request is none of ours.
 */
export const idLike = <P extends IdPrefix>(prefix: P, id: string, now: number): `${P}_${string}` => {
  const rest = id.slice(id.indexOf("_"));
  return rest.length === REST ? ((prefix + rest) as `${P}_${string}`) : newId(prefix, now);
};
/** What follows the prefix of an id: `_` and 26 characters. */
const REST = 27;
