import type pg from "pg";
import { GatewayError } from "#core/errors.ts";
import { newBareId } from "#core/ids.ts";
import { FUNCTIONS, MIGRATIONS, VERSION } from "./migrations/migrations.ts";

/** One gateway at a time brings the database up to date; which of them is first does not matter. */
const LOCK = [4_712, 5];

/** Brings the schema of this connection up to date; answers how many steps that took, and what the store is called. */
export const migrate = async (
  client: pg.Client,
  now: number,
): Promise<{ steps: number; epoch: string; channel: string }> => {
  await client.query("begin");
  try {
    const { rows: where } = await client.query("select current_schema() as name");
    if (where[0]?.name === null) throw refusal("The database has no schema that this user may use.");
    await client.query("select pg_advisory_xact_lock($1, $2)", LOCK);
    await client.query("set local client_min_messages = warning");
    await client.query(`create table if not exists gateway_migrations (
      version integer primary key, functions text, oldest integer not null, made timestamptz not null default now())`);
    const known = await client.query(
      "select version, functions, oldest from gateway_migrations order by version desc limit 1",
    );
    const { version = 0, functions = "", oldest = 0 } = known.rows[0] ?? {};
    if (oldest > VERSION) {
      throw refusal(
        `Its schema is of version ${version}, which needs a newer gateway than this one (which knows ${VERSION}).`,
      );
    }
    let steps = 0;
    for (const migration of MIGRATIONS.filter((step) => step.version > version)) {
      await client.query(migration.sql);
      await client.query("insert into gateway_migrations (version, oldest) values ($1, $2)", [
        migration.version,
        migration.oldest,
      ]);
      steps++;
    }
    // An older gateway leaves the functions of a newer one as they are: they take its calls, too.
    if (version <= VERSION && (steps > 0 || functions !== FUNCTIONS.digest)) {
      await client.query(FUNCTIONS.sql);
      await client.query("update gateway_migrations set functions = $1 where version = $2", [
        FUNCTIONS.digest,
        VERSION,
      ]);
    }
    await client.query("insert into gateway_store (epoch) values ($1) on conflict do nothing", [newBareId(now)]);
    const { rows } = await client.query(
      "select epoch, 'gateway_' || (select oid from pg_namespace where nspname = current_schema()) as channel from gateway_store",
    );
    await client.query("commit");
    return { steps, epoch: rows[0].epoch, channel: rows[0].channel };
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
};

const refusal = (detail: string) => new GatewayError("store-unavailable", detail);
