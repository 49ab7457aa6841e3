import { GatewayError } from "#kit/errors.ts";
import type { ApiKey } from "#store/store.ts";
import { refuse } from "./limits.ts";
import type { KeyRecord, Records } from "./records.ts";

/** The record of an idempotency key that has not ended. Another hash is refused. */
export const findKey = (
  records: Records,
  { key, hash }: { key: string; hash: string },
  now: number,
): KeyRecord | undefined => {
  const known = records.keys.find(key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== hash) throw refuse("idempotency-mismatch", "The key was used with another body.");
  return known;
};

export const keepKey = (
  records: Records,
  { key, hash, expiresAt }: { key: string; hash: string; expiresAt: number },
  { turnId, eventId }: { turnId?: string; eventId?: string },
): void => records.keys.put({ key, hash, expiresAt, turnId, eventId });

export const listKeys = ({ apiKeys }: Records): ApiKey[] => apiKeys.all();

export const createKey = ({ apiKeys }: Records, key: ApiKey): void => {
  if (apiKeys.find(key.keyId)) throw new GatewayError("internal", "key id in use");
  apiKeys.put({ ...key });
};

export const replaceKey = ({ apiKeys }: Records, keyId: string, key: ApiKey, endsAt: number): boolean => {
  const old = apiKeys.find(keyId);
  if (!old || old.replacedBy !== undefined) return false;
  apiKeys.put({ ...old, replacedBy: key.keyId, expiresAt: Math.min(old.expiresAt ?? endsAt, endsAt) });
  apiKeys.put({ ...key });
  return true;
};

export const revokeKey = ({ apiKeys }: Records, keyId: string): boolean => {
  const isKept = apiKeys.find(keyId) !== undefined;
  if (isKept) apiKeys.delete(keyId);
  return isKept;
};

export const touchKey = ({ apiKeys }: Records, keyId: string, now: number): void => {
  const key = apiKeys.find(keyId);
  if (key) apiKeys.put({ ...key, lastUsedAt: Math.max(now, key.lastUsedAt ?? 0) });
};
