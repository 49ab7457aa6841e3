import { setTimeout as pause } from "node:timers/promises";
import type { PostgresServer } from "#test/harness/postgres-server.ts";

/** A primary and a standby that follows it in step, so that what was acknowledged is on both. */
export const withStandby = async (primary: PostgresServer): Promise<PostgresServer> => {
  const standby = await primary.standby();
  await primary.query("alter system set synchronous_standby_names = '*'");
  await primary.query("select pg_reload_conf()");
  const inStep = "select 1 from pg_stat_replication where sync_state = 'sync'";
  while ((await primary.query(inStep)).length === 0) await pause(100);
  return standby;
};

const AWAY_MS = 1_500;

/**
 * What happens to the two of them, a step at a call: the primary dies and its standby takes its place; it comes back as it was, and
 * takes writes, too; the new one is away for a while; all connections to it end.
 */
export const failovers = (primary: PostgresServer, standby: PostgresServer): (() => Promise<void>)[] => [
  async () => {
    await primary.kill();
    await standby.promote();
  },
  async () => {
    await primary.start();
    await primary.query("alter system reset synchronous_standby_names");
    await primary.query("select pg_reload_conf()");
  },
  async () => {
    await standby.stop("fast");
    await pause(AWAY_MS);
    await standby.start();
  },
  async () => {
    await standby.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'agent-gateway'",
    );
  },
];
