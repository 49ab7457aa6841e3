import { randomBytes } from "node:crypto";
import type { Events } from "#observe/events.ts";
import type { ApiKey, Store } from "#store/store.ts";
import type { Clock } from "./clock.ts";
import { GatewayError } from "./errors.ts";
import { newId } from "./ids.ts";
import { createSecretIndex, hashOf } from "./secrets.ts";

export type Scope = "chat" | "admin";

/** A key that the configuration holds. */
export type ConfiguredKey = { name: string; hash: Buffer; prefix: string | undefined; scopes: readonly Scope[] };

/** A key as people see it; those of the configuration have no id. */
export type KeyRecord = Omit<ApiKey, "keyId" | "prefix" | "createdAt" | "hash"> & {
  keyId: string | undefined;
  prefix: string | undefined;
  createdAt: number | undefined;
};

const TOUCH_EVERY_MS = 60_000;
const RETRY_MS = 500;
/** So long a start waits for a database. */
const START_MS = 10_000;
export const PREFIX_LENGTH = 9;

/** REST keys: those of the configuration and those minted here. Of either only a hash is kept. */
export const createKeys = (parts: {
  store: Store;
  clock: Clock;
  events: Pick<Events, "storeFailed">;
  configured: readonly ConfiguredKey[];
}) => {
  const { store, clock, events } = parts;
  let configured: KeyRecord[] = [];
  let configuredHashes: Buffer[] = [];
  let minted: ApiKey[] = [];
  let find = createSecretIndex<KeyRecord>([]);
  const touched = new WeakMap<KeyRecord, number>();
  /** How often keys were made or revoked, as far as is known: what was read meanwhile may be older. */
  let changes = 0;
  let isFollowing = false;
  let isClosed = false;
  let stopPause = () => {};
  let tellChange = () => {};

  const index = () => {
    find = createSecretIndex<KeyRecord>([
      ...minted.map((key) => ({ hash: Buffer.from(key.hash, "hex"), value: key as KeyRecord })),
      ...configured.map((key, n) => ({ hash: configuredHashes[n] as Buffer, value: key })),
    ]);
    tellChange();
  };
  const configure = (keys: readonly ConfiguredKey[]) => {
    const known = new Map(configured.map((key) => [key.name, key.lastUsedAt]));
    configuredHashes = keys.map(({ hash }) => hash);
    configured = keys.map(({ name, prefix, scopes }) => {
      return { keyId: undefined, name, prefix, scopes, createdAt: undefined, lastUsedAt: known.get(name) };
    });
    index();
  };
  configure(parts.configured);

  /** Reads the kept keys. While the store is away it tries again, for so long as `mayWait`. */
  const read = async (mayWait: (error: unknown) => boolean): Promise<void> => {
    for (let known: number | undefined; known !== changes; ) {
      known = changes;
      try {
        const kept = await store.listKeys();
        if (known !== changes) continue;
        minted = kept;
        index();
      } catch (error) {
        if (!mayWait(error)) throw error;
        events.storeFailed({ operation: "listKeys", error });
        known = undefined;
        await new Promise<void>((resolve) => (stopPause = clock.after(RETRY_MS, resolve)));
      }
    }
  };

  return {
    configure,
    /** Reads the kept keys at the start, before anybody can be refused for one that is not known yet. */
    load(): Promise<void> {
      const end = clock.monotonic() + START_MS;
      return read((error) => GatewayError.from(error).name === "store-unavailable" && clock.monotonic() < end);
    },
    /** Another node has changed them: they are read until the store answers, as one of them may be revoked. */
    follow(): void {
      changes++;
      if (isFollowing || isClosed) return;
      isFollowing = true;
      const reading = read(() => !isClosed).catch(() => {});
      void reading.finally(() => (isFollowing = false));
    },
    close(): void {
      isClosed = true;
      stopPause();
    },
    /** Those of the configuration in its order, then the minted ones, newest first. */
    async list(): Promise<KeyRecord[]> {
      return [...configured, ...(await store.listKeys()).reverse()];
    },
    async create({
      name,
      scopes,
    }: {
      name: string;
      scopes: readonly Scope[];
    }): Promise<{ key: ApiKey; secret: string }> {
      const secret = `gw_${randomBytes(32).toString("base64url")}`;
      const now = clock.now();
      const key: ApiKey = {
        keyId: newId("key", now),
        name,
        prefix: secret.slice(0, PREFIX_LENGTH),
        hash: hashOf(secret).toString("hex"),
        scopes,
        createdAt: now,
        lastUsedAt: undefined,
      };
      await store.createKey(key);
      changes++;
      minted = [...minted, key];
      index();
      return { key, secret };
    },
    async revoke(keyId: string): Promise<void> {
      const known = await store.revokeKey(keyId);
      changes++;
      minted = minted.filter((key) => key.keyId !== keyId);
      index();
      if (!known) throw new GatewayError("key-not-found", `No key has the id ${keyId}.`);
    },
    /** Calls it after each change of the keys: one of them may be gone. */
    onChange(tell: () => void): void {
      tellChange = tell;
    },
    knows: (hash: Buffer): boolean => find(hash) !== undefined,
    /** The key of this hash, noted as used to the minute. */
    use(hash: Buffer): KeyRecord | undefined {
      const key = find(hash);
      if (!key) return undefined;
      const now = clock.now();
      if (now - (touched.get(key) ?? 0) < TOUCH_EVERY_MS) return key;
      touched.set(key, now);
      key.lastUsedAt = now;
      // A note for people: the call that used the key does not depend on it.
      if (key.keyId !== undefined) store.touchKey(key.keyId, now).catch(() => {});
      return key;
    },
  };
};

export type Keys = ReturnType<typeof createKeys>;

/** The configuration line that keeps a key past the end of a store that forgets. */
export const configLineOf = ({ name, hash, scopes }: ApiKey): string =>
  `{ name: ${JSON.stringify(name)}, key: "sha256:${hash}", scopes: ${JSON.stringify(scopes)} }`;
