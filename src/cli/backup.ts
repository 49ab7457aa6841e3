import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import { missingPackages } from "#gateway/packages.ts";
import { copySqlite } from "#gateway/stores.ts";
import { parseOptions, UsageError } from "./options.ts";

const HELP = `Usage: npm start -- backup TO [options]

Copies the SQLite store into the new file TO, as it is at one moment, while the gateway goes on.

  --config FILE  the configuration that names the store (default: as for the gateway)
  --store FILE   the store's file itself; then no configuration is read, and none of its secrets is needed
  -h, --help     print this
`;

/** Copies the SQLite store that a gateway works with; answers what the person at the terminal is told. */
export const backup = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> => {
  const { to, config, store, help } = readOptions(args);
  if (help) return HELP;
  if (to === undefined) throw new UsageError("Say where the copy goes: backup TO. --help tells more.");
  if (existsSync(to)) throw new UsageError(`${to} is there already: a backup is a new file.`);
  const from = store ?? (await pathOf(config, env));
  if (!existsSync(from)) throw new UsageError(`${from} is not there: no gateway has made it yet.`);
  const install = missingPackages(["sqlite"]);
  if (install !== undefined) throw new UsageError(`SQLite's driver is not installed. Run: ${install}`);
  const bytes = await copySqlite(from, to).catch((error: Error) => {
    throw new UsageError(`${from} cannot be copied: ${error.message}.`);
  });
  return `${resolve(to)} holds the store as it was: ${bytes} bytes.\n`;
};

const readOptions = (args: readonly string[]) => {
  const text = { type: "string" } as const;
  const { values, positionals } = parseOptions(
    args,
    { config: text, store: text, help: { type: "boolean", short: "h" } },
    true,
  );
  if (positionals.length > 1)
    throw new UsageError(`${positionals[1]} is one file too many. backup --help lists the options.`);
  return { ...values, to: positionals[0] };
};

/** The file that the configuration names. */
const pathOf = async (file: string | undefined, env: NodeJS.ProcessEnv): Promise<string> => {
  const { config, tryOut } = await loadConfig({ file, env, built: BUILT });
  if (config.store.type === "sqlite") return config.store.path;
  if (tryOut)
    throw new UsageError(
      "There is no gateway.json5 here to name the store. Say by --config where it is, or --store FILE.",
    );
  const how = config.store.type === "postgres" ? "pg_dump copies a database" : "memory holds nothing that outlives it";
  throw new UsageError(`The store is ${config.store.type}, which this does not copy: ${how}.`);
};
