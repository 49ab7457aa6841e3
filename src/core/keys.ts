import { randomBytes } from "node:crypto";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { suggest } from "#kit/fault-words.ts";
import { newId } from "#kit/ids.ts";
import { createSecretIndex, hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import type { ApiKey, KeyBudget, KeyLimits, Store } from "#store/store.ts";
import { checkKeyBudget } from "./key-budgets.ts";
import type { EndingKey } from "./token-ages.ts";

export type Scope = "chat" | "admin";

/** A key that the configuration holds. */
export type ConfiguredKey = KeyLimits & {
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
/** An expired key is shown for this time, and then deleted. */
const SHOWN_MS = 30 * 86_400_000;
/** The longest time between two checks of the keys: the clock may be set meanwhile. */
const CHECK_MS = 3_600_000;
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

/** A key of the scope admin reaches every agent. */
function checkAgents({ scopes, agents = [] }: NewKey, known: readonly string[]): void {
  const refuse = (pointer: string, message: string): never => {
    throw new GatewayError("invalid-request", `agents ${message}`, { errors: [{ pointer, message }] });
  };
  if (agents.length > 0 && scopes.includes("admin")) refuse("/agents", ADMIN_REACHES_ALL);
  for (const [index, agent] of agents.entries())
    if (!known.includes(agent))
      refuse(`/agents/${index}`, `names an agent that is not configured.${suggest(agent, known)}`);
}

const ADMIN_REACHES_ALL = "is only for keys whose only scope is chat: a key with the scope admin reaches every agent.";

type KeysParts = {
  store: Store;
  /** The names of the configured agents. */
  agents: () => readonly string[];
  clock: Clock;
  events: Pick<Events, "storeFailed" | "keyCreated" | "keyRevoked">;
  configured: readonly ConfiguredKey[];
};

/** The request for a new key. */
type NewKey = KeyLimits & { name: string; scopes: readonly Scope[]; expiresAt?: number | undefined };
export type MintedKey = { key: ApiKey; secret: string };

/** REST keys: those of the configuration and those minted here. Only a hash of each is stored. */
export class Keys {
  readonly #parts: KeysParts;
  #configured: { hash: Buffer; value: KeyRecord }[] = [];
  #minted: ApiKey[] = [];
  #find = createSecretIndex<KeyRecord>([]);
  /** The number of known changes of the minted keys. A list that was read during a change may be older than it. */
  #changes = 0;
  #isFollowing = false;
  #isClosed = false;
  #stopPause = (): void => {};
  #stopExpiry = (): void => {};
  readonly #listeners: (() => void)[] = [];

  constructor(parts: KeysParts) {
    this.#parts = parts;
    this.configure(parts.configured);
  }

  /** Replaces the keys of the configuration. A key with the same name keeps the time of its last use. */
  configure(keys: readonly ConfiguredKey[]): void {
    const used = new Map(this.#configured.map(({ value: { name, lastUsedAt } }) => [name, lastUsedAt]));
    this.#configured = keys.map(({ hash, ...key }) => {
      return { hash, value: { ...key, keyId: undefined, createdAt: undefined, lastUsedAt: used.get(key.name) } };
    });
    this.#index();
  }

  /** Reads the stored keys at the start, before a call can be refused because its key is not known yet. */
  load(): Promise<void> {
    const end = this.#parts.clock.monotonic() + START_MS;
    return this.#read(
      (error) => GatewayError.from(error).name === "store-unavailable" && this.#parts.clock.monotonic() < end,
    );
  }

  /** Reads the keys after a change by another gateway. Retries until the store answers: the change may be a revocation. */
  follow(): void {
    this.#changes++;
    if (this.#isFollowing || this.#isClosed) return;
    this.#isFollowing = true;
    const reading = this.#read(() => !this.#isClosed).catch(() => {});
    void reading.finally(() => (this.#isFollowing = false));
  }

  /** The keys of the configuration in its order, then the minted ones, newest first. */
  async list(): Promise<KeyRecord[]> {
    return [...this.#configured.map(({ value }) => value), ...(await this.#parts.store.listKeys()).reverse()];
  }

  async create(request: NewKey, caller: string): Promise<MintedKey> {
    const { store, clock, events } = this.#parts;
    checkName(request.name);
    checkAgents(request, this.#parts.agents());
    const now = clock.now();
    checkKeyBudget(request, this.unexpired());
    const made = mint(request, now);
    const { keyId, name } = made.key;
    await store.createKey(made.key);
    this.#change([...this.#minted, made.key]);
    events.keyCreated({ keyId, name, caller });
    return made;
  }

  /** Makes a key with the rights and limits of another, which stays valid for `overlapMs`. Throws `key-not-found` and `key-replaced`. */
  async rotate(keyId: string, request: { overlapMs: number; expiresAt: number | undefined }, caller: string) {
    const { overlapMs, expiresAt } = request;
    const old = (await this.#parts.store.listKeys()).find((key) => key.keyId === keyId);
    const now = this.#parts.clock.now();
    if (!old) throw keyNotFound(keyId);
    if (old.replacedBy !== undefined) throw replaced(keyId, old.replacedBy);
    if (isOver(old, now)) throw new GatewayError("key-replaced", `The key ${keyId} has expired. Create a new one.`);
    const made = mint({ ...old, expiresAt }, now);
    const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlapMs);
    if (!(await this.#parts.store.replaceKey(keyId, made.key, endsAt))) throw replaced(keyId, "another");
    const ended = { replacedBy: made.key.keyId, expiresAt: endsAt };
    this.#change([...this.#minted.map((key) => (key.keyId === keyId ? { ...key, ...ended } : key)), made.key]);
    this.#parts.events.keyCreated({ keyId: made.key.keyId, name: old.name, caller, replaces: keyId });
    return { ...made, replacedEndsAt: endsAt };
  }

  async revoke(keyId: string, caller: string): Promise<void> {
    if (!(await this.#forget(keyId))) throw keyNotFound(keyId);
    this.#parts.events.keyRevoked({ keyId, caller });
  }

  /** Keys that expire within two weeks, or expired in the last one. */
  ending(): EndingKey[] {
    const now = this.#parts.clock.now();
    return this.known().flatMap(({ keyId, name, expiresAt, replacedBy }) =>
      expiresAt !== undefined && expiresAt - now <= 2 * WEEK_MS && now - expiresAt <= WEEK_MS
        ? [{ keyId, name, expiresAt, replacedBy, isConfigured: keyId === undefined }]
        : [],
    );
  }

  /** Calls the function after each change of the keys: one of them may be revoked, or have another budget. */
  onChange(notify: () => void): void {
    this.#listeners.push(notify);
  }

  /** The keys of the configuration, then the created ones, as this gateway knows them. */
  known(): KeyRecord[] {
    return [...this.#configured.map(({ value }) => value), ...this.#minted];
  }

  /** The known keys that have not expired. */
  unexpired(): KeyRecord[] {
    const now = this.#parts.clock.now();
    return this.known().filter((key) => !isOver(key, now));
  }

  knows(hash: Buffer): boolean {
    return this.#find(hash) !== undefined;
  }

  /** The key with this hash, unless it has expired. */
  good(hash: Buffer): KeyRecord | undefined {
    const key = this.#find(hash);
    return key && !isOver(key, this.#parts.clock.now()) ? key : undefined;
  }

  /** The key with this hash. Stores the time of its use, to the minute. Throws `key-expired`. */
  use(hash: Buffer): KeyRecord | undefined {
    const key = this.#find(hash);
    if (!key) return undefined;
    const now = this.#parts.clock.now();
    if (key.expiresAt !== undefined && key.expiresAt <= now) throw expired(key.name, key.expiresAt);
    if (Math.abs(now - (key.lastUsedAt ?? 0)) < TOUCH_EVERY_MS) return key;
    key.lastUsedAt = now;
    // The time is for people: the call does not depend on it.
    if (key.keyId !== undefined) this.#parts.store.touchKey(key.keyId, now).catch(() => {});
    return key;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#stopPause();
    this.#stopExpiry();
  }

  #notify(): void {
    for (const notify of this.#listeners) notify();
  }

  #change(keys: ApiKey[]): void {
    this.#changes++;
    this.#minted = keys;
    this.#index();
  }

  #index(): void {
    this.#find = createSecretIndex<KeyRecord>([
      ...this.#minted.map((key) => ({ hash: Buffer.from(key.hash, "hex"), value: key as KeyRecord })),
      ...this.#configured,
    ]);
    this.#notify();
    this.#waitForExpiry();
  }

  /** Notifies when a key expires, and deletes keys that expired long ago. */
  #waitForExpiry(): void {
    this.#stopExpiry();
    if (this.#isClosed) return;
    const now = this.#parts.clock.now();
    const ends = this.known().flatMap(({ expiresAt = 0 }) => (expiresAt > now ? [expiresAt - now] : []));
    if (ends.length === 0 && this.#minted.every(({ expiresAt }) => expiresAt === undefined)) return;
    this.#stopExpiry = this.#parts.clock.after(Math.min(CHECK_MS, ...ends.map((ms) => ms + 1)), () => {
      for (const { keyId, expiresAt } of this.#minted)
        if (expiresAt !== undefined && expiresAt + SHOWN_MS < this.#parts.clock.now())
          void this.#forget(keyId).catch(() => {});
      this.#notify();
      this.#waitForExpiry();
    });
  }

  async #forget(keyId: string): Promise<boolean> {
    const isKnown = await this.#parts.store.revokeKey(keyId);
    this.#change(this.#minted.filter((key) => key.keyId !== keyId));
    return isKnown;
  }

  /** Reads the stored keys. Retries a failed read if `mayWait` permits it, and a read during which the keys changed. */
  async #read(mayWait: (error: unknown) => boolean): Promise<void> {
    for (let known: number | undefined; known !== this.#changes; ) {
      known = this.#changes;
      try {
        const stored = await this.#parts.store.listKeys();
        if (known !== this.#changes) continue;
        this.#minted = stored;
        this.#index();
      } catch (error) {
        if (!mayWait(error)) throw error;
        this.#parts.events.storeFailed({ operation: "listKeys", error });
        known = undefined;
        await new Promise<void>((resolve) => (this.#stopPause = this.#parts.clock.after(RETRY_MS, resolve)));
      }
    }
  }
}

/** Makes a key. Only the caller gets its secret. */
function mint({ name, scopes, expiresAt, agents, rateLimit, budget }: NewKey, now: number): MintedKey {
  requireExpiry(expiresAt, now);
  const secret = `gw_${randomBytes(32).toString("base64url")}`;
  const key: ApiKey = {
    keyId: newId("key", now),
    name,
    prefix: secret.slice(0, PREFIX_LENGTH),
    hash: hashOf(secret).toString("hex"),
    scopes,
    createdAt: now,
    lastUsedAt: undefined,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(agents !== undefined && { agents }),
    ...(rateLimit !== undefined && { rateLimit }),
    ...(budget !== undefined && { budget }),
  };
  return { key, secret };
}

function isOver({ expiresAt }: Pick<KeyRecord, "expiresAt">, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}

function keyNotFound(keyId: string): GatewayError {
  return new GatewayError("key-not-found", `No key has the id ${keyId}.`);
}

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
    `The key \`${name}\` expired at ${new Date(at).toISOString()}. Create a new one on the console's settings page.`,
  );
}

function replaced(keyId: string, by: string): GatewayError {
  return new GatewayError("key-replaced", `The key ${keyId} was replaced by ${by}. Rotate that one.`);
}

/** The configuration line that keeps a key past the end of a store that forgets. */
export function configLineOf({ name, hash, scopes, expiresAt, agents, rateLimit, budget }: ApiKey): string {
  const fields = {
    name: JSON.stringify(name),
    key: `"sha256:${hash}"`,
    scopes: JSON.stringify(scopes),
    ...(expiresAt !== undefined && { expiresAt: `"${new Date(expiresAt).toISOString()}"` }),
    ...(agents && { agents: JSON.stringify(agents) }),
    ...(rateLimit && { rateLimit: `{ maxRequests: ${rateLimit.maxRequests}, windowMs: ${rateLimit.windowMs} }` }),
    ...(budget && { budget: budgetLineOf(budget) }),
  };
  return `{ ${Object.entries(fields)
    .map(([field, text]) => `${field}: ${text}`)
    .join(", ")} }`;
}

function budgetLineOf({ per, timeZone, tokens, cost }: KeyBudget): string {
  const fields = {
    per: JSON.stringify(per),
    ...(timeZone !== "UTC" && { timeZone: JSON.stringify(timeZone) }),
    ...(tokens !== undefined && { tokens }),
    ...(cost !== undefined && { cost }),
  };
  return `{ ${Object.entries(fields)
    .map(([field, value]) => `${field}: ${value}`)
    .join(", ")} }`;
}
