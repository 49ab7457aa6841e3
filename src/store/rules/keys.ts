import { GatewayError } from "#kit/errors.ts";
import { refuse } from "./limits.ts";
import type { Records, Rule } from "./records.ts";

/** The turn or event of an idempotency key that has not ended. Another hash, or other work, is refused. */
export function findKey(
  records: Records,
  { key, hash }: { key: string; hash: string },
  now: number,
  work: "turnId" | "eventId",
): string | undefined {
  const known = records.keys.find(key);
  if (!known || known.expiresAt <= now) return undefined;
  const id = known[work];
  if (known.hash !== hash || id === undefined) {
    throw refuse("idempotency-mismatch", "The key was used with another body.");
  }
  return id;
}

export function keepKey(
  records: Records,
  { key, hash, expiresAt }: { key: string; hash: string; expiresAt: number },
  { turnId, eventId }: { turnId?: string; eventId?: string },
): void {
  records.keys.put({ key, hash, expiresAt, turnId, eventId });
}

export const listKeys: Rule<"listKeys"> = ({ apiKeys }) => apiKeys.all();

export const createKey: Rule<"createKey"> = ({ apiKeys }, key) => {
  if (apiKeys.find(key.keyId)) throw new GatewayError("internal", "key id in use");
  apiKeys.put({ ...key });
};

export const replaceKey: Rule<"replaceKey"> = ({ apiKeys }, keyId, key, endsAt) => {
  const old = apiKeys.find(keyId);
  if (!old || old.replacedBy !== undefined) return false;
  apiKeys.put({ ...old, replacedBy: key.keyId, expiresAt: Math.min(old.expiresAt ?? endsAt, endsAt) });
  apiKeys.put({ ...key });
  return true;
};

export const revokeKey: Rule<"revokeKey"> = ({ apiKeys }, keyId) => {
  const isStored = apiKeys.find(keyId) !== undefined;
  if (isStored) apiKeys.delete(keyId);
  return isStored;
};

export const touchKey: Rule<"touchKey"> = ({ apiKeys }, keyId, now) => {
  const key = apiKeys.find(keyId);
  if (key) apiKeys.put({ ...key, lastUsedAt: Math.max(now, key.lastUsedAt ?? 0) });
};
