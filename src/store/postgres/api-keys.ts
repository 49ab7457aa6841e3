import { GatewayError } from "#kit/errors.ts";
import type { ApiKey, Store } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import { keepText, readText } from "./texts.ts";

type KeyMethods = Pick<Store, "listKeys" | "createKey" | "replaceKey" | "revokeKey" | "touchKey">;
type KeyRow = {
  key_id: string;
  name: string;
  prefix: string;
  hash: string;
  scopes: ApiKey["scopes"];
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
  replaced_by: string | null;
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
      expiresAt: row.expires_at ?? undefined,
      replacedBy: row.replaced_by ?? undefined,
    }));
  },
  createKey: async (key) => {
    const { changed } = await frame.call<{ changed: boolean }>("keep_key", [documentOf(key), null, null]);
    if (!changed) throw new GatewayError("internal", "key id in use");
  },
  replaceKey: async (keyId, key, endsAt) => {
    const { changed } = await frame.call<{ changed: boolean }>("keep_key", [documentOf(key), keepText(keyId), endsAt]);
    return changed;
  },
  revokeKey: async (keyId) => (await frame.call<{ changed: boolean }>("revoke_key", [keepText(keyId)])).changed,
  touchKey: async (keyId, now) => {
    await frame.call("touch_key", [keepText(keyId), now]);
  },
});

/** A key as the function takes it. */
const documentOf = ({ name, ...key }: ApiKey): string => JSON.stringify({ ...key, name: keepText(name) });
