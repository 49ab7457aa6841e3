import type pg from "pg";
import { GatewayError } from "#kit/errors.ts";
import { Servers } from "./connect.ts";
import { unavailable } from "./errors.ts";
import { LOCK_WAIT_MS, lockWithin, OID, refusal, runSteps, underLock, versionOf } from "./migrate.ts";
import { MIGRATIONS, type Migration } from "./migrations/migrations.ts";

type Upgraded = { from: number; to: number };

/** Connects to a database and upgrades its schema. Throws `store-unavailable` with the cause and the next step. */
export async function upgradeDatabase(url: readonly string[], report: (line: string) => void): Promise<Upgraded> {
  const client = await new Servers(url).find();
  try {
    // The name distinguishes this connection from those of gateways.
    await client.query("set application_name = 'agent-gateway migrate'");
    return await upgrade(client, report);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw unavailable(`The database cannot be upgraded: ${(error as Error).message}`, error);
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * Runs all steps on a schema that no gateway uses. A step is one transaction: an interruption leaves the schema before or after the step, and
 * another run continues from there. `report` gets a line for each step, and the notices that a step raises. Returns the versions before and after; they
 * are 0 in a database without a schema, where the first gateway creates it.
 */
export async function upgrade(
  client: pg.Client,
  report: (line: string) => void,
  migrations: readonly Migration[] = MIGRATIONS,
  lockWaitMs = LOCK_WAIT_MS,
): Promise<Upgraded> {
  return await underLock(client, lockWaitMs, "notice", async () => {
    const known = "select 1 from pg_tables where schemaname = current_schema() and tablename = 'gateway_migrations'";
    if ((await client.query(known)).rows.length === 0) return { from: 0, to: 0 };
    const from = await versionOf(client, migrations);
    const to = migrations.at(-1)?.version ?? 0;
    if (from === 0 || from >= to) return { from, to: from };
    await refuseIfUsed(client);
    await lockWithin(client, lockWaitMs, `select pg_advisory_lock(7, (${OID})::integer)`, [], async () => {
      throw refusal(
        "A gateway holds the lock for writes of the database. Stop all gateways, and run the command again.",
      );
    });
    await client.query(NO_LIMITS);
    await client.query(CHECK_CLIENT).catch(() => {});
    const onNotice = ({ code, message }: { code: string | undefined; message: string | undefined }) => {
      if (code === RAISED && message) report(message);
    };
    client.on("notice", onNotice);
    try {
      await runSteps(client, from, migrations, WITHOUT_GATEWAYS, report);
    } finally {
      client.off("notice", onNotice);
      await client.query(`select pg_advisory_unlock(7, (${OID})::integer)`).catch(() => {});
    }
    return { from, to };
  });
}

/** Gateways are stopped, so a step can wait long for a table. PostgreSQL cancels an autovacuum of the table after a second. */
const WITHOUT_GATEWAYS = { waitMs: 30_000, tries: 1 };
/** A step may take longer than the limits of the database allow. */
const NO_LIMITS =
  "select set_config(name, '0', false) from pg_settings where name in ('statement_timeout', 'transaction_timeout')";
/** If the connection is lost, PostgreSQL aborts the running statement. Some versions and platforms do not have this setting. */
const CHECK_CLIENT = "set client_connection_check_interval = 2000";
/** The SQLSTATE of a notice that a step raises. */
const RAISED = "00000";

/** Gateways that reported themselves in this time use the database. They do so once a second. */
const SEEN_MS = 10_000;
const SEEN =
  "select node, seen > extract(epoch from clock_timestamp()) * 1000 - $1 as is_recent from nodes order by node";
/** The connections of gateways to the database, whatever schema they use. */
const CONNECTIONS = `select pid, host(client_addr) as address from pg_stat_activity
  where datname = current_database() and application_name = 'agent-gateway' and pid <> pg_backend_pid()`;

/**
 * Throws if a gateway uses the database. A stopped gateway has removed its row from `nodes`. The row of a killed gateway remains, as does
 * the row of a suspended gateway, which may continue later.
 */
async function refuseIfUsed(client: pg.Client): Promise<void> {
  const { rows: nodes } = await client.query(SEEN, [SEEN_MS]);
  const recent = nodes.filter(({ is_recent }) => is_recent).map(({ node }) => `node_${node}`);
  if (recent.length > 0) {
    const who = recent.length === 1 ? "A gateway uses" : `${recent.length} gateways use`;
    throw refusal(
      `${who} the database (${recent.join(", ")}). Stop all gateways, wait ${SEEN_MS / 1_000} s if one was killed, and run the command again.`,
    );
  }
  if (nodes.length === 0) return;
  const { rows: open } = await client.query(CONNECTIONS);
  if (open.length === 0) return;
  const from = [...new Set(open.flatMap(({ address }) => address ?? []))].join(", ");
  const pids = open.map(({ pid }) => pid).join(", ");
  throw refusal(
    `A gateway that does not answer may still be connected (process ${pids} of the server${from && `, from ${from}`}). Stop it. If you cannot, ` +
      `end its connections: select pg_terminate_backend(pid) from pg_stat_activity where pid in (${pids}). ` +
      "If the connections belong to gateways on another schema, run: delete from nodes",
  );
}
