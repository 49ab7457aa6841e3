import { GatewayError } from "#kit/errors.ts";
import type { ApiKey } from "#store/store.ts";
import { refuse } from "./limits.ts";
import type { KeyRecord, Records, Rule } from "./records.ts";

/** The record of an idempotency key that has not ended. Another hash, or other work, is refused. */
export function findKey(
  records: Records,
  { key, hash }: { key: string; hash: string },
  now: number,
  work: "turnId" | "eventId",
): KeyRecord | undefined {
  const known = records.keys.find(key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== hash || known[work] === undefined) {
    throw refuse("idempotency-mismatch", "The key was used with another body.");
  }
  return known;
}

export function storeKey(
  records: Records,
  { key, hash, expiresAt }: { key: string; hash: string; expiresAt: number },
  { turnId, eventId, deliveryId }: { turnId?: string; eventId?: string; deliveryId?: string },
): void {
  records.keys.put({ key, hash, expiresAt, turnId, eventId, deliveryId });
}

export const listKeys: Rule<"listKeys"> = ({ apiKeys }) => apiKeys.all().map(({ key }) => key);

export const createKey: Rule<"createKey"> = (records, key) => {
  if (records.apiKeys.find(key.keyId)) throw new GatewayError("internal", "key id in use");
  putKey(records, key);
};

function putKey(records: Records, key: ApiKey): void {
  records.apiKeys.put({ key: { ...key }, place: records.next("place") });
}

export const replaceKey: Rule<"replaceKey"> = (records, keyId, key, endsAt) => {
  const old = records.apiKeys.find(keyId);
  if (!old || old.key.replacedBy !== undefined) return false;
  const expiresAt = Math.min(old.key.expiresAt ?? endsAt, endsAt);
  records.apiKeys.put({ ...old, key: { ...old.key, replacedBy: key.keyId, expiresAt } });
  putKey(records, key);
  return true;
};

export const revokeKey: Rule<"revokeKey"> = ({ apiKeys }, keyId) => {
  const found = apiKeys.find(keyId);
  if (found) apiKeys.delete(found);
  return found !== undefined;
};

export const touchKey: Rule<"touchKey"> = ({ apiKeys }, keyId, now) => {
  const found = apiKeys.find(keyId);
  if (!found) return;
  const { key } = found;
  apiKeys.put({ ...found, key: { ...key, lastUsedAt: Math.max(now, key.lastUsedAt ?? 0) } });
};
