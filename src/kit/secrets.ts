import { hash, timingSafeEqual } from "node:crypto";

/** sha256 of a secret, the only stored form. */
export function hashOf(secret: string | Buffer): Buffer {
  return hash("sha256", secret, "buffer");
}

/**
 * Finds the value of a secret. Compares hashes in constant time: the duration of the look-up could only reveal a part of the hash of the caller's own
 * guess.
 */
export function createSecretIndex<T>(entries: readonly { hash: Buffer; value: T }[]) {
  const buckets = new Map<number, { hash: Buffer; value: T }[]>();
  for (const entry of entries) {
    const bucket = entry.hash.readUInt32LE(0);
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), entry]);
  }
  return (hash: Buffer): T | undefined =>
    buckets.get(hash.readUInt32LE(0))?.find((entry) => timingSafeEqual(entry.hash, hash))?.value;
}
