import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { GatewayError } from "#kit/errors.ts";
import { newBareId } from "#kit/ids.ts";
import { failureOf } from "./errors.ts";
import { MIGRATIONS, type Migration } from "./migrations/migrations.ts";

/** The advisory lock: one gateway or command at a time updates the schema. */
const LOCK = [4_712, 5];
/** The longest wait for the lock. A gateway's start runs only steps that take seconds. */
export const LOCK_WAIT_MS = 60_000;
/** The longest wait of a step for a table, and the number of attempts. */
type LockWait = { waitMs: number; tries: number };
/** Calls of running gateways wait behind a step that waits for a table, so the step stops waiting soon and is retried. */
const WITH_GATEWAYS: LockWait = { waitMs: 400, tries: 40 };
const PAUSE_MS = 300;

/**
 * Prepares the schema at the start of a gateway: creates it, or runs the steps that are safe while older gateways run. If a step is not safe,
 * the schema is refused, because only `upgrade` runs that step. Returns the number of steps, the store's epoch and its notification channel.
 */
export async function migrate(
  client: pg.Client,
  now: number,
  migrations: readonly Migration[] = MIGRATIONS,
  lockWaitMs = LOCK_WAIT_MS,
): Promise<{ steps: number; epoch: string; channel: string }> {
  return await underLock(client, lockWaitMs, "warning", async () => {
    await client.query(`create table if not exists gateway_migrations (
      version integer primary key, oldest integer not null, made timestamptz not null default now())`);
    const version = await versionOf(client, migrations);
    const needed = migrations.findLast((step) => step.oldest === step.version)?.version ?? 0;
    if (version > 0 && version < needed) {
      throw refusal(
        `The schema of the database has version ${version} (release ${releaseOf(version, migrations)}), and this gateway needs version ${needed}. ` +
          "Stop all gateways, make a backup, and run: agent-gateway migrate",
      );
    }
    const steps = await runSteps(client, version, migrations);
    await client.query("insert into gateway_store (epoch) values ($1) on conflict do nothing", [newBareId(now)]);
    const { rows } = await client.query(`select epoch, 'gateway_' || (${OID}) as channel from gateway_store`);
    return { steps, epoch: rows[0].epoch, channel: rows[0].channel };
  });
}

export const OID = "select oid from pg_namespace where nspname = current_schema()";

/** Runs `work` under the lock for schema upgrades. */
export async function underLock<T>(
  client: pg.Client,
  waitMs: number,
  notices: string,
  work: () => Promise<T>,
): Promise<T> {
  const { rows: where } = await client.query("select current_schema() as name");
  if (where[0]?.name === null)
    throw refusal("The database user does not have access to a schema. Grant the user access to a schema.");
  await takeLock(client, waitMs);
  try {
    await client.query(`set client_min_messages = ${notices}`);
    return await work();
  } finally {
    // If the connection broke, the lock is already released.
    await client.query("reset client_min_messages").catch(() => {});
    await client.query("select pg_advisory_unlock($1, $2)", LOCK).catch(() => {});
  }
}

/** The version of the schema; 0 if it has none. Throws for a schema that this gateway does not support. */
export async function versionOf(client: pg.Client, migrations: readonly Migration[]): Promise<number> {
  const { rows } = await client.query("select version, oldest from gateway_migrations order by version desc limit 1");
  const { version = 0, oldest = 0 } = rows[0] ?? {};
  const newest = migrations.at(-1)?.version ?? 0;
  if (oldest > newest) {
    throw refusal(
      `Its schema has version ${version}, which needs a newer gateway (this one supports up to ${newest}).`,
    );
  }
  const first = migrations[0]?.version ?? 0;
  if (version > 0 && version < first) {
    throw refusal(
      `Its schema is from before 0.2.0: it has version ${version}, and this gateway supports ${first} and later. Use another schema.`,
    );
  }
  return version;
}

/** The latest release whose schema has at most this version. */
function releaseOf(version: number, migrations: readonly Migration[]): string {
  return migrations.findLast((step) => step.version <= version && step.release)?.release ?? String(version);
}

/** Runs the steps after version `from`, each in a transaction. Version 0: creates the schema first. Returns the number of steps. */
export async function runSteps(
  client: pg.Client,
  from: number,
  migrations: readonly Migration[],
  lockWait = WITH_GATEWAYS,
  report: (line: string) => void = () => {},
): Promise<number> {
  const created = from === 0 ? migrations.find(({ schema }) => schema !== undefined) : undefined;
  const steps = migrations.filter((step) => step.version >= (created?.version ?? from + 1));
  let at = from;
  for (const step of steps) {
    report(`Upgrading the schema from version ${at} to ${step.version}.`);
    await inTransaction(client, at, step.version, lockWait, async () => {
      await client.query(step === created ? (step.schema as string) : step.sql);
      const row = [step.version, step.oldest];
      await client.query("insert into gateway_migrations (version, oldest) values ($1, $2)", row);
    });
    at = step.version;
  }
  return steps.length;
}

const HOLDER = `select a.pid, a.usename, a.application_name, host(a.client_addr) as address, a.state
  from pg_locks l join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'advisory' and l.classid = $1 and l.objid = $2 and l.objsubid = 2 and l.granted and a.datname = current_database()`;

async function takeLock(client: pg.Client, waitMs: number): Promise<void> {
  await lockWithin(client, waitMs, "select pg_advisory_lock($1, $2)", LOCK, async () => {
    const { rows } = await client.query(HOLDER, LOCK);
    throw refusal(heldBy(rows[0], waitMs));
  });
}

/** Takes a lock. Calls `refuse` if others hold it for `waitMs`. */
export async function lockWithin(
  client: pg.Client,
  waitMs: number,
  sql: string,
  values: unknown[],
  refuse: () => Promise<never>,
): Promise<void> {
  try {
    await client.query(`set lock_timeout = ${waitMs}`);
    await client.query(sql, values);
  } catch (error) {
    if (failureOf(error) !== "clash") throw error;
    await refuse();
  } finally {
    await client.query("reset lock_timeout").catch(() => {});
  }
}

type Holder = {
  pid: number;
  usename: string | null;
  application_name: string | null;
  address: string | null;
  state: string | null;
};

function heldBy(holder: Holder | undefined, waitMs: number): string {
  const waited = `The lock for schema upgrades was held by other connections for ${waitMs / 1_000} s`;
  if (!holder) return `${waited}. It is free now: try again.`;
  const { pid, usename, application_name: program, address, state } = holder;
  const who = [program || "a program without a name", usename && `of the user ${usename}`, address && `at ${address}`];
  const now = state === null ? "" : `, ${state}`;
  return (
    `${waited}, now by process ${pid} of the server (${who.filter(Boolean).join(" ")}${now}). ` +
    `If this process upgrades the schema, wait until it has finished, then try again. Otherwise end it first: select pg_terminate_backend(${pid})`
  );
}

async function inTransaction(
  client: pg.Client,
  from: number,
  to: number,
  { waitMs, tries }: LockWait,
  work: () => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(`begin; set local lock_timeout = ${waitMs}`);
      await work();
      await client.query("commit");
      return;
    } catch (error) {
      await client.query("rollback").catch(() => {});
      const failure = failureOf(error);
      if (failure === "lost") throw error;
      if (failure !== "clash") throw stepFailed(from, to, error);
      if (attempt === tries) throw stepBlocked(from, error);
      await pause(PAUSE_MS * (0.5 + Math.random()));
    }
  }
}

export function refusal(detail: string) {
  return new GatewayError("store-unavailable", detail);
}

function stepFailed(from: number, to: number, error: unknown) {
  return refusal(
    `The database's schema could not be upgraded from version ${from} to ${to} (${(error as Error).message}). It still has version ${from}.`,
  );
}

function stepBlocked(from: number, error: unknown) {
  return refusal(
    `The database's schema could not be upgraded: another program, such as a dump or a report, uses a table (${(error as Error).message}). ` +
      `Wait until it has finished, then try again. The schema still has version ${from}.`,
  );
}
