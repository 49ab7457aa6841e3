import { randomFillSync } from "node:crypto";

type IdPrefix = "msg" | "turn" | "evt" | "dlv" | "key" | "req" | "chat" | "cmp" | "node";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_LENGTH = 10;
const RANDOM_LENGTH = 16;

let lastMs = -1;
let timePart = "";
function encodeTime(ms: number): string {
  if (ms === lastMs) return timePart;
  lastMs = ms;
  timePart = "";
  for (let rest = ms; timePart.length < TIME_LENGTH; rest = Math.floor(rest / 32))
    timePart = ALPHABET.charAt(rest % 32) + timePart;
  return timePart;
}

// Random characters come in batches: a call for each id would cost more than the rest of it.
const pool = Buffer.alloc(256 * RANDOM_LENGTH);
let used = pool.length;
function randomPart(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    for (let at = 0; at < pool.length; at++) pool[at] = ALPHABET.charCodeAt((pool[at] as number) & 31);
    used = 0;
  }
  used += RANDOM_LENGTH;
  return pool.toString("latin1", used - RANDOM_LENGTH, used);
}

/** A new id: the prefix, 48 bits of time and 80 random bits in Crockford's base 32. Sorts by time as text. */
export function newId<P extends IdPrefix>(prefix: P, now: number): `${P}_${string}` {
  // Added up, as a template asks each part to become a string first.
  return (prefix + "_" + newBareId(now)) as `${P}_${string}`;
}

/** A new id without a prefix, for names with their own prefix (`chat:<id>`, `webhook:<id>`). */
export function newBareId(now: number): string {
  return encodeTime(now) + randomPart();
}

/** The time of an id, as a text that sorts like the time. Undefined for a text that is not an id. */
export function timePartOf(id: string): string | undefined {
  return /^[a-z]+_([0-9A-HJKMNP-TV-Z]{10})[0-9A-HJKMNP-TV-Z]{16}$/.exec(id)?.[1];
}

/**
 * An id of another kind for the same request: it has the same time and random part, so that people can see that. A new id if that of the request is
 * not ours.
 */
export function idLike<P extends IdPrefix>(prefix: P, id: string, now: number): `${P}_${string}` {
  const rest = id.slice(id.indexOf("_"));
  const isOurs = rest.length === 1 + TIME_LENGTH + RANDOM_LENGTH;
  return isOurs ? ((prefix + rest) as `${P}_${string}`) : newId(prefix, now);
}

/** True for the id of a schedule's session. */
export function isOfSchedule(sessionId: string): boolean {
  return sessionId.startsWith("schedule:");
}

/** True for the id of a webhook's session. These sessions have a retention of their own. */
export function isOfWebhook(sessionId: string): boolean {
  return sessionId.startsWith("webhook:");
}
