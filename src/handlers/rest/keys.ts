import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { configLineOf, type KeyRecord } from "#core/keys.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import type { ApiKey, KeyBudget } from "#store/store.ts";
import { limitsOf, momentOf, timeOf, timeOrNull, unknownCursor } from "./present.ts";

type KeyOperation = "keys.list" | "keys.create" | "keys.rotate" | "keys.revoke";

export function keys(core: Core): Pick<RestHandlers<CallContext>, KeyOperation> {
  return {
    "keys.list": async ({ query: { limit, cursor } }) => {
      const all = await core.keys.list();
      const from = cursor === undefined ? 0 : indexAfter(all, cursor);
      const page = all.slice(from, from + limit);
      const last = page.at(-1);
      return { keys: page.map(present), next_cursor: last && from + limit < all.length ? cursorOf(last) : null };
    },
    "keys.create": async ({ body: { name, scopes, expires_at, agents, rate_limit, budget } }, { caller }) => {
      const request = {
        name,
        scopes,
        expiresAt: momentOf("/expires_at", expires_at),
        agents: agents ?? undefined,
        rateLimit: rate_limit ? { maxRequests: rate_limit.limit, windowMs: rate_limit.window_ms } : undefined,
        budget: budget ? budgetOf(budget) : undefined,
      };
      const { key, secret } = await core.keys.create(request, caller.name);
      return presentMinted(key, secret);
    },
    "keys.rotate": async ({ path, body: { overlap_seconds, expires_at } }, { caller }) => {
      const request = { overlapMs: overlap_seconds * 1_000, expiresAt: momentOf("/expires_at", expires_at) };
      const { key, secret, replacedEndsAt } = await core.keys.rotate(path.key_id, request, caller.name);
      return { ...presentMinted(key, secret), replaces: path.key_id, replaced_expires_at: timeOf(replacedEndsAt) };
    },
    "keys.revoke": async ({ path }, { caller }) => {
      await core.keys.revoke(path.key_id, caller.name);
    },
  };
}

type WantedBudget = NonNullable<RestReplies["keys.create"]["budget"]>;

function budgetOf({ per, time_zone = "UTC", tokens, cost }: WantedBudget): KeyBudget {
  return { per, timeZone: time_zone, ...(tokens !== undefined && { tokens }), ...(cost !== undefined && { cost }) };
}

function present(key: KeyRecord): RestReplies["keys.list"]["keys"][number] {
  return {
    key_id: key.keyId ?? null,
    name: key.name,
    prefix: key.prefix ?? null,
    scopes: [...key.scopes],
    created_at: timeOrNull(key.createdAt),
    last_used_at: timeOrNull(key.lastUsedAt),
    expires_at: timeOrNull(key.expiresAt),
    ...limitsOf(key),
    replaced_by: key.replacedBy ?? null,
    source: key.keyId === undefined ? "config" : "console",
  };
}

function presentMinted(key: ApiKey, secret: string): RestReplies["keys.create"] {
  return {
    ...present(key),
    key_id: key.keyId,
    prefix: key.prefix,
    created_at: timeOf(key.createdAt),
    last_used_at: null,
    replaced_by: null,
    source: "console",
    key: secret,
    config_line: configLineOf(key),
  };
}

// Names are unique among the configured keys, ids among the others: either marks the end of a page.
function cursorOf({ keyId, name }: KeyRecord): string {
  return Buffer.from(keyId ?? `config:${name}`).toString("base64url");
}

function indexAfter(keys: readonly KeyRecord[], cursor: string): number {
  const at = keys.findIndex((key) => cursorOf(key) === cursor);
  if (at < 0) throw unknownCursor();
  return at + 1;
}
