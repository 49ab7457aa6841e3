import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";
import { it } from "vitest";
import { PostgresServer, startPostgres } from "./postgres-server.ts";

export { embeddedBin, systemBins } from "./postgres-bins.ts";
export { PostgresServer, startPostgres } from "./postgres-server.ts";

/** The server that all test files of a run share, and that no file stops. */
export type TestPostgres = Pick<PostgresServer, "port" | "url" | "query" | "run" | "createDatabase" | "createSchema">;

/**
 * Declares tests that require a PostgreSQL: `await postgresTests((server) => { it(…) })`. If none can be started, they are one skipped test with the
 * reason; with CI or REQUIRE_POSTGRES set they fail.
 */
export async function postgresTests(declare: (server: TestPostgres) => void): Promise<void> {
  const found = await testPostgres();
  if (found instanceof PostgresServer) {
    declare(found);
    return;
  }
  const why = `No PostgreSQL could be started, and its tests are skipped: ${found}`;
  if (process.env.CI || process.env.REQUIRE_POSTGRES) throw new Error(why);
  console.warn(why);
  it.skip(why, () => {});
}

/** The first caller starts it; it ends with the run. Returns the reason if it could not be started. */
async function testPostgres(): Promise<PostgresServer | string> {
  const run = process.env.VITEST && isMainThread ? process.ppid : process.pid;
  const folder = join(tmpdir(), `gateway-postgres-run-${run}`);
  const note = join(folder, "started.json");
  try {
    mkdirSync(folder);
  } catch (taken) {
    if ((taken as NodeJS.ErrnoException).code !== "EEXIST") return String(taken);
    while (!existsSync(note)) await pause(20);
    const { port, error } = JSON.parse(readFileSync(note, "utf8")) as { port: number; error?: string };
    return error ?? new PostgresServer("", folder, undefined, port);
  }
  const tell = (what: object) => {
    writeFileSync(`${note}.new`, JSON.stringify(what));
    renameSync(`${note}.new`, note);
  };
  try {
    const server = await startPostgres({ folder, livesWith: run });
    tell({ port: server.port });
    return server;
  } catch (error) {
    mkdirSync(folder, { recursive: true });
    tell({ error: String(error) });
    return String(error);
  }
}
