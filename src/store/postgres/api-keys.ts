import { GatewayError } from "#core/errors.ts";
import type { ApiKey, Store } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import { keepText, readText } from "./texts.ts";

type KeyMethods = Pick<Store, "listKeys" | "createKey" | "revokeKey" | "touchKey">;
type KeyRow = {
  key_id: string;
  name: string;
  prefix: string;
  hash: string;
  scopes: ApiKey["scopes"];
  created_at: number;
  last_used_at: number | null;
};

export const keyMethods = (frame: Frame): KeyMethods => ({
  listKeys: async () => {
    const rows = await frame.query<KeyRow>("select * from api_keys order by ordinal", []);
    return rows.map((row) => ({
      keyId: row.key_id,
      name: readText(row.name),
      prefix: row.prefix,
      hash: row.hash,
      scopes: row.scopes,
      createdAt: row.created_at,
      lastUsedAt: row.last_used_at ?? undefined,
    }));
  },
  createKey: async ({ keyId, name, prefix, hash, scopes, createdAt, lastUsedAt }) => {
    const args = [keyId, keepText(name), prefix, hash, JSON.stringify(scopes), createdAt, lastUsedAt ?? null];
    const { changed } = await frame.call<{ changed: boolean }>("create_key", args);
    if (!changed) throw new GatewayError("internal", "key id in use");
  },
  revokeKey: async (keyId) => (await frame.call<{ changed: boolean }>("revoke_key", [keepText(keyId)])).changed,
  touchKey: async (keyId, now) => {
    await frame.call("touch_key", [keepText(keyId), now]);
  },
});
