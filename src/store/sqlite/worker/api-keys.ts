import { GatewayError } from "#kit/errors.ts";
import type { ApiKey } from "#store/store.ts";
import { bytesOf } from "../text.ts";
import type { Parts } from "./parts.ts";
import type { State } from "./state.ts";

/** API keys: a few hundred at most. */
export class ApiKeys {
  readonly #list;
  readonly #find;
  readonly #create;
  readonly #revoke;
  readonly #touch;
  readonly #read;
  readonly #change;

  constructor({ db }: Parts) {
    this.#list = db.query(`SELECT ${bytesOf("body")}, last_used_at FROM api_keys ORDER BY place`);
    this.#find = db.query("SELECT 1 FROM api_keys WHERE key_id = ?");
    this.#create = db.run("INSERT INTO api_keys (key_id, last_used_at, body) VALUES (?, ?, ?)");
    this.#read = db.query(`SELECT ${bytesOf("body")} FROM api_keys WHERE key_id = ?`);
    this.#change = db.run("UPDATE api_keys SET body = ? WHERE key_id = ?");
    this.#revoke = db.run("DELETE FROM api_keys WHERE key_id = ?");
    this.#touch = db.run("UPDATE api_keys SET last_used_at = max(?, coalesce(last_used_at, 0)) WHERE key_id = ?");
  }

  list(): ApiKey[] {
    return this.#list.all<[string, number | null]>([]).map(([body, lastUsedAt]) => {
      return { ...(JSON.parse(body) as ApiKey), lastUsedAt: lastUsedAt ?? undefined };
    });
  }

  replace(keyId: string, key: ApiKey, endsAt: number): boolean {
    const row = this.#read.get<[string]>([keyId]);
    const old = row && (JSON.parse(row[0]) as ApiKey);
    if (!old || old.replacedBy !== undefined) return false;
    const changed = { ...old, replacedBy: key.keyId, expiresAt: Math.min(old.expiresAt ?? endsAt, endsAt) };
    this.#change([JSON.stringify(changed), keyId]);
    this.create(key);
    return true;
  }

  create({ lastUsedAt, ...key }: ApiKey): void {
    if (this.#find.get([key.keyId])) throw new GatewayError("internal", "key id in use");
    this.#create([key.keyId, lastUsedAt ?? null, JSON.stringify(key)]);
  }

  revoke(keyId: string): boolean {
    return this.#revoke([keyId]) > 0;
  }

  touch(keyId: string, now: number): void {
    this.#touch([now, keyId]);
  }
}

export const keyMethods = {
  write: {
    createKey: (state: State, key: ApiKey): void => state.apiKeys.create(key),
    replaceKey: (state: State, { keyId, key, endsAt }: { keyId: string; key: ApiKey; endsAt: number }): boolean =>
      state.apiKeys.replace(keyId, key, endsAt),
    revokeKey: (state: State, keyId: string): boolean => state.apiKeys.revoke(keyId),
    touchKey: (state: State, { keyId, now }: { keyId: string; now: number }): void => state.apiKeys.touch(keyId, now),
  },
  read: { listKeys: (state: State): ApiKey[] => state.apiKeys.list() },
};
