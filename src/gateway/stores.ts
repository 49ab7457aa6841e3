import type { Config } from "#config/config.ts";
import { type Clock, systemClock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { Store, StoreNotice } from "#store/store.ts";

type StoreParts = { clock: Clock; notice: (notice: StoreNotice) => void };

/** Opens the store that the configuration names. An engine that needs a driver is loaded only when it is asked for. */
export async function openStore(config: Config["store"], parts: StoreParts): Promise<Store> {
  if (config.type === "memory") return createMemoryStore(parts);
  try {
    if (config.type === "sqlite") {
      const { createSqliteStore } = await import("#store/sqlite/sqlite.ts");
      return await createSqliteStore({ ...parts, path: config.path });
    }
    const { createPostgresStore } = await import("#store/postgres/postgres.ts");
    return await createPostgresStore({ ...parts, url: config.url });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    throw new Error(`The store cannot be opened: ${error.message}`, { cause: error });
  }
}

/** A refusal that an engine puts in a sentence, and no mistake of ours. */
function isRefusal(error: unknown): error is Error {
  return error instanceof GatewayError
    ? error.name !== "internal"
    : error instanceof Error && error.constructor === Error;
}

/** Copies a SQLite store while a gateway works with it; answers the size of the copy. */
export async function copySqlite(from: string, to: string): Promise<number> {
  const { copyStore } = await import("#store/sqlite/copy.ts");
  return await copyStore(from, to, systemClock.now());
}

/** Upgrades the schema of a PostgreSQL store while gateways are stopped. Returns its versions before and after. */
export async function upgradePostgres(url: readonly string[], report: (line: string) => void) {
  const { upgradeDatabase } = await import("#store/postgres/upgrade.ts");
  try {
    return await upgradeDatabase(url, report);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    throw new Error(`The store cannot be upgraded: ${error.message}`, { cause: error });
  }
}

/** The warning at the start with a store that is not durable: the loss, and how to prevent it. */
export function forgetfulness({ durable }: Store): string | undefined {
  return durable
    ? undefined
    : 'store.type is memory: when the gateway stops, it loses sessions, waiting turns, system events, API keys and usage. To store them on disk, set store: { type: "sqlite", path: "./gateway.db" }.';
}
