import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import { missingPackages } from "#gateway/packages.ts";
import { copySqlite } from "#gateway/stores.ts";
import { configFile, withEnvFile } from "./configured.ts";
import { CliError } from "./failures.ts";
import { needFolderOf } from "./values.ts";

export type BackupOptions = { config?: string; store?: string };

/** Copies the SQLite store of a running gateway; returns the text for the terminal. */
export async function backup(file: string, { config, store }: BackupOptions, env: NodeJS.ProcessEnv): Promise<string> {
  // SQLite reads a name that starts with "file:" as a URI, but not an absolute path.
  const to = resolve(file);
  if (existsSync(to)) throw new CliError(`${file} already exists: a backup is always a new file.`);
  needFolderOf(to);
  const from = resolve(store ?? (await pathOf(config, env)));
  if (!existsSync(from)) throw new CliError(`${from} does not exist: no gateway has created it yet.`);
  const install = missingPackages(["sqlite"]);
  if (install !== undefined) throw new CliError(`SQLite's driver is not installed. Run: ${install}`);
  const bytes = await copySqlite(from, to).catch((error: Error) => {
    throw new CliError(`${from} cannot be copied: ${error.message}.`);
  });
  return `${to} is a copy of the store: ${bytes} bytes.\n`;
}

/** The file that the configuration names. */
async function pathOf(file: string | undefined, env: NodeJS.ProcessEnv): Promise<string> {
  const { config, tryOut } = await loadConfig({ file, env: withEnvFile(configFile(file, env), env), built: BUILT });
  if (config.store.type === "sqlite") return config.store.path;
  if (tryOut)
    throw new CliError(
      "This folder has no gateway.json5 that names the store. Use --config or --store to name the file.",
    );
  const how = config.store.type === "postgres" ? "pg_dump copies a database" : "memory holds nothing that outlives it";
  throw new CliError(`The store is ${config.store.type}, which this does not copy: ${how}.`);
}
