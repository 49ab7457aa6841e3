import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import { missingPackages } from "#gateway/packages.ts";
import { upgradePostgres } from "#gateway/stores.ts";
import { configFile, withEnvFile } from "./configured.ts";
import { CliError } from "./failures.ts";
import { say } from "./terminal.ts";

export type MigrateOptions = { config?: string };

/** Upgrades the schema of the PostgreSQL store; answers the words for the person at the terminal. */
export async function migrate({ config: file }: MigrateOptions, env: NodeJS.ProcessEnv): Promise<string> {
  const { config, tryOut } = await loadConfig({ file, env: withEnvFile(configFile(file, env), env), built: BUILT });
  if (tryOut) throw new CliError("There is no gateway.json5 here to name the store. Say by --config where it is.");
  const { store } = config;
  if (store.type !== "postgres") {
    const why = store.type === "sqlite" ? "a gateway upgrades its file at the start" : "it stores nothing";
    throw new CliError(`The store is ${store.type}: ${why}. This command is for PostgreSQL.`);
  }
  const install = missingPackages(["postgres"]);
  if (install !== undefined) throw new CliError(`PostgreSQL's driver is not installed. Run: ${install}`);
  const { from, to } = await upgradePostgres(store.url, say);
  if (to === 0) return "Nothing to do: the database is empty. The first gateway creates its tables.\n";
  if (from === to) return `Nothing to do: the schema has version ${to}. Start the gateways.\n`;
  return `The schema has version ${to}. Start the gateways.\n`;
}
