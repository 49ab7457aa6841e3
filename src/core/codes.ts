import { createCipheriv, createDecipheriv, randomBytes, timingSafeEqual } from "node:crypto";
import { hashOf } from "#kit/secrets.ts";
import type { CoreParts } from "./parts.ts";

/** The time in which a code must be used. */
export const CODE_MS = 60_000;
/** The most unused codes. A new one replaces the oldest. */
export const MOST_CODES = 100;

/** The identity that a code signs in. */
export type SignIn = { name: string; kind: "console" | "admin"; token: string };

type Waiting = { hash: Buffer; endsAt: number; sealed: Buffer; tag: Buffer };

/**
 * Codes that sign a browser in once. The gateway stores the hash of a code, and the identity encrypted under a key that only the code gives:
 * until the code is used, its token cannot be read from memory.
 */
export function createCodes({ clock }: Pick<CoreParts, "clock">) {
  let waiting: Waiting[] = [];
  const dropEnded = (): void => {
    const now = clock.monotonic();
    waiting = waiting.filter(({ endsAt }) => endsAt > now);
  };
  const find = (hash: Buffer): Waiting | undefined => {
    dropEnded();
    return waiting.find((one) => timingSafeEqual(one.hash, hash));
  };
  return {
    create(signIn: SignIn): { code: string; expiresAt: number } {
      dropEnded();
      const code = randomBytes(32).toString("base64url");
      const cipher = createCipheriv("aes-256-gcm", keyOf(code), NO_NONCE);
      const sealed = Buffer.concat([cipher.update(JSON.stringify(signIn)), cipher.final()]);
      if (waiting.length >= MOST_CODES) waiting.shift();
      waiting.push({ hash: hashOf(code), endsAt: clock.monotonic() + CODE_MS, sealed, tag: cipher.getAuthTag() });
      return { code, expiresAt: clock.now() + CODE_MS };
    },
    /** True if an unused code has this hash. */
    knows: (hash: Buffer): boolean => find(hash) !== undefined,
    /** Redeems a code. Of several calls at once only the first succeeds. */
    redeem(code: string): SignIn | undefined {
      const found = find(hashOf(code));
      if (!found) return undefined;
      waiting = waiting.filter((one) => one !== found);
      const decipher = createDecipheriv("aes-256-gcm", keyOf(code), NO_NONCE).setAuthTag(found.tag);
      return JSON.parse(Buffer.concat([decipher.update(found.sealed), decipher.final()]).toString()) as SignIn;
    },
  };
}

/** A different hash from the stored one. */
function keyOf(code: string): Buffer {
  return hashOf(`seal ${code}`);
}
/** Each key encrypts one text. */
const NO_NONCE = Buffer.alloc(12);
