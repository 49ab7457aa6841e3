import { randomBytes } from "node:crypto";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { createSecretIndex, hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import type { ApiKey, Store } from "#store/store.ts";
import type { EndingKey } from "./token-ages.ts";

export type Scope = "chat" | "admin";

/** A key that the configuration holds. */
export type ConfiguredKey = {
  name: string;
  hash: Buffer;
  prefix: string | undefined;
  scopes: readonly Scope[];
  expiresAt?: number | undefined;
};

/** A key as people see it; those of the configuration have no id. */
export type KeyRecord = Omit<ApiKey, "keyId" | "prefix" | "createdAt" | "hash"> & {
  keyId: string | undefined;
  prefix: string | undefined;
  createdAt: number | undefined;
};

const TOUCH_EVERY_MS = 60_000;
const RETRY_MS = 500;
/** A key that has expired is shown for so long, and then forgotten. */
const SHOWN_MS = 30 * 86_400_000;
/** The longest wait until keys are looked through again: the clock may be set meanwhile. */
const LOOK_MS = 3_600_000;
const WEEK_MS = 7 * 86_400_000;
const TEN_YEARS_MS = 10 * 366 * 86_400_000;
/** The time that a start waits for a database. */
const START_MS = 10_000;
const PREFIX_LENGTH = 9;

/** A name is printed in lists and logs: it must not control a terminal or change the writing direction. */
function checkName(name: string): void {
  if (!/[\p{Cc}\p{Bidi_Control}]/u.test(name)) return;
  const message = "must not contain control characters";
  throw new GatewayError("invalid-request", `name ${message}.`, { errors: [{ pointer: "/name", message }] });
}

/** REST keys: those of the configuration and those minted here. Only a hash is kept of each. */
export function createKeys(parts: {
  store: Store;
  clock: Clock;
  events: Pick<Events, "storeFailed">;
  configured: readonly ConfiguredKey[];
}) {
  const { store, clock, events } = parts;
  let configured: { hash: Buffer; value: KeyRecord }[] = [];
  let minted: ApiKey[] = [];
  let find = createSecretIndex<KeyRecord>([]);
  /** The number of times that keys were made or revoked, as far as is known: a list that was read meanwhile may be older. */
  let changes = 0;
  let isFollowing = false;
  let isClosed = false;
  let stopPause = () => {};
  let stopLook = () => {};
  let tellChange = () => {};

  const index = () => {
    find = createSecretIndex<KeyRecord>([
      ...minted.map((key) => ({ hash: Buffer.from(key.hash, "hex"), value: key as KeyRecord })),
      ...configured,
    ]);
    tellChange();
    waitForExpiry();
  };
  const change = (keys: ApiKey[]): void => {
    changes++;
    minted = keys;
    index();
  };
  const all = (): KeyRecord[] => [...configured.map(({ value }) => value), ...minted];
  const isOver = ({ expiresAt }: Pick<KeyRecord, "expiresAt">): boolean =>
    expiresAt !== undefined && expiresAt <= clock.now();
  /** Tells when a key expires, and forgets those that have been shown long enough. */
  const waitForExpiry = (): void => {
    stopLook();
    if (isClosed) return;
    const now = clock.now();
    const ends = all().flatMap(({ expiresAt = 0 }) => (expiresAt > now ? [expiresAt - now] : []));
    if (ends.length === 0 && minted.every(({ expiresAt }) => expiresAt === undefined)) return;
    stopLook = clock.after(Math.min(LOOK_MS, ...ends.map((ms) => ms + 1)), () => {
      for (const { keyId, expiresAt } of minted)
        if (expiresAt !== undefined && expiresAt + SHOWN_MS < clock.now()) void forget(keyId).catch(() => {});
      tellChange();
      waitForExpiry();
    });
  };
  const forget = async (keyId: string): Promise<boolean> => {
    const known = await store.revokeKey(keyId);
    change(minted.filter((key) => key.keyId !== keyId));
    return known;
  };
  const mint = (of: { name: string; scopes: readonly Scope[]; expiresAt?: number | undefined }) => {
    const secret = `gw_${randomBytes(32).toString("base64url")}`;
    const now = clock.now();
    requireExpiry(of.expiresAt, now);
    const key: ApiKey = {
      keyId: newId("key", now),
      name: of.name,
      prefix: secret.slice(0, PREFIX_LENGTH),
      hash: hashOf(secret).toString("hex"),
      scopes: of.scopes,
      createdAt: now,
      lastUsedAt: undefined,
      ...(of.expiresAt !== undefined && { expiresAt: of.expiresAt }),
    };
    return { key, secret };
  };
  const configure = (keys: readonly ConfiguredKey[]) => {
    const used = new Map(configured.map(({ value: { name, lastUsedAt } }) => [name, lastUsedAt]));
    configured = keys.map(({ hash, ...key }) => {
      return { hash, value: { ...key, keyId: undefined, createdAt: undefined, lastUsedAt: used.get(key.name) } };
    });
    index();
  };
  configure(parts.configured);

  /** Reads the kept keys. While the store is away it tries again, for so long as `mayWait`. */
  const read = async (mayWait: (error: unknown) => boolean): Promise<void> => {
    for (let known: number | undefined; known !== changes; ) {
      known = changes;
      try {
        const stored = await store.listKeys();
        if (known !== changes) continue;
        minted = stored;
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
      stopLook();
    },
    /** The keys of the configuration in its order, then the minted ones, newest first. */
    async list(): Promise<KeyRecord[]> {
      return [...configured.map(({ value }) => value), ...(await store.listKeys()).reverse()];
    },
    async create(of: Parameters<typeof mint>[0]): Promise<{ key: ApiKey; secret: string }> {
      checkName(of.name);
      const made = mint(of);
      await store.createKey(made.key);
      change([...minted, made.key]);
      return made;
    },
    /** Makes a key in the place of another, which goes on for `overlapMs`. Throws `key-not-found` and `key-replaced`. */
    async rotate(keyId: string, { overlapMs, expiresAt }: { overlapMs: number; expiresAt: number | undefined }) {
      const old = (await store.listKeys()).find((key) => key.keyId === keyId);
      if (!old) throw new GatewayError("key-not-found", `No key has the id ${keyId}.`);
      if (old.replacedBy !== undefined) throw replaced(keyId, old.replacedBy);
      if (isOver(old)) throw new GatewayError("key-replaced", `The key ${keyId} has expired. Make a new one.`);
      const made = mint({ name: old.name, scopes: old.scopes, expiresAt });
      const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, clock.now() + overlapMs);
      if (!(await store.replaceKey(keyId, made.key, endsAt))) throw replaced(keyId, "another");
      const ended = { replacedBy: made.key.keyId, expiresAt: endsAt };
      change([...minted.map((key) => (key.keyId === keyId ? { ...key, ...ended } : key)), made.key]);
      return { ...made, replacedEndsAt: endsAt };
    },
    async revoke(keyId: string): Promise<void> {
      if (!(await forget(keyId))) throw new GatewayError("key-not-found", `No key has the id ${keyId}.`);
    },
    /** Keys that expire within two weeks, or did so in the last one. */
    ending(): EndingKey[] {
      const now = clock.now();
      return all().flatMap(({ keyId, name, expiresAt, replacedBy }) =>
        expiresAt !== undefined && expiresAt - now <= 2 * WEEK_MS && now - expiresAt <= WEEK_MS
          ? [{ name, expiresAt, replacedBy, isConfigured: keyId === undefined }]
          : [],
      );
    },
    /** Calls it after each change of the keys: one of them may be gone. */
    onChange(tell: () => void): void {
      tellChange = tell;
    },
    knows: (hash: Buffer): boolean => find(hash) !== undefined,
    /** True if the key exists, has not expired and has the scope. */
    isGood(hash: Buffer, scope?: Scope): boolean {
      const key = find(hash);
      return key !== undefined && !isOver(key) && (scope === undefined || key.scopes.includes(scope));
    },
    /** The key of this hash, noted as used to the minute. Throws `key-expired`. */
    use(hash: Buffer): KeyRecord | undefined {
      const key = find(hash);
      if (!key) return undefined;
      const now = clock.now();
      if (key.expiresAt !== undefined && key.expiresAt <= now) throw expired(key.name, key.expiresAt);
      if (Math.abs(now - (key.lastUsedAt ?? 0)) < TOUCH_EVERY_MS) return key;
      key.lastUsedAt = now;
      // A note for people: the call that used the key does not depend on it.
      if (key.keyId !== undefined) store.touchKey(key.keyId, now).catch(() => {});
      return key;
    },
  };
}

export type Keys = ReturnType<typeof createKeys>;

function requireExpiry(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || (expiresAt > now && expiresAt <= now + TEN_YEARS_MS)) return;
  const message = expiresAt > now ? "is more than ten years ahead" : "is not in the future";
  throw new GatewayError("invalid-request", `\`expires_at\` ${message}.`, {
    errors: [{ pointer: "/expires_at", message }],
  });
}

function expired(name: string, at: number): GatewayError {
  return new GatewayError(
    "key-expired",
    `The key \`${name}\` expired at ${new Date(at).toISOString()}. Make a new one on the console's settings page.`,
  );
}

function replaced(keyId: string, by: string): GatewayError {
  return new GatewayError("key-replaced", `The key ${keyId} was replaced by ${by}. Rotate that one.`);
}

/** The configuration line that keeps a key past the end of a store that forgets. */
export function configLineOf({ name, hash, scopes, expiresAt }: ApiKey): string {
  const end = expiresAt === undefined ? "" : `, expiresAt: "${new Date(expiresAt).toISOString()}"`;
  return `{ name: ${JSON.stringify(name)}, key: "sha256:${hash}", scopes: ${JSON.stringify(scopes)}${end} }`;
}
