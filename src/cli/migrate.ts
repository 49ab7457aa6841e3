import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import { missingPackages } from "#gateway/packages.ts";
import { upgradePostgres } from "#gateway/stores.ts";
import { configFile, withEnvFile } from "./configured.ts";
import { CliError } from "./failures.ts";
import { say } from "./terminal.ts";

export type MigrateOptions = { config?: string };

/** Upgrades the schema of the PostgreSQL store. Returns the text for the terminal. */
export async function migrate({ config: file }: MigrateOptions, env: NodeJS.ProcessEnv): Promise<string> {
  const { config, tryOut } = await loadConfig({ file, env: withEnvFile(configFile(file, env), env), built: BUILT });
  if (tryOut)
    throw new CliError("This folder has no gateway.json5 that names the store. Use --config to name the file.");
  const { store } = config;
  if (store.type !== "postgres") {
    const why =
      store.type === "sqlite" ? "the gateway upgrades the file when it starts" : "it does not need an upgrade";
    throw new CliError(`The store is ${store.type}: ${why}. This command is for PostgreSQL.`);
  }
  const install = missingPackages(["postgres"]);
  if (install !== undefined) throw new CliError(`PostgreSQL's driver is not installed. Run: ${install}`);
  const { from, to } = await upgradePostgres(store.url, say);
  if (to === 0) return "Nothing to do: the database is empty. The first gateway creates its tables.\n";
  if (from === to) return `Nothing to do: the schema has version ${to}. Start the gateways.\n`;
  return `The schema has version ${to}. Start the gateways.\n`;
}
