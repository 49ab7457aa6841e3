import type { Command } from "commander";
import type { MigrateOptions } from "../migrate.ts";
import { print } from "../terminal.ts";

export function addMigrate(program: Command): void {
  program
    .command("migrate")
    .summary("upgrade the PostgreSQL store of an older version")
    .description(
      "Upgrades the schema of the PostgreSQL store to this version. Stop all gateways and make a backup first. If it is interrupted, run the command again: it continues after the last completed step.",
    )
    .option("--config <file>", "the configuration that names the store (default: as for serve)")
    .addHelpText("after", "\nExample:\n  agent-gateway migrate --config /etc/agent-gateway/gateway.json5")
    .action(async (options: MigrateOptions) => {
      const { migrate } = await import("../migrate.ts");
      print(await migrate(options, process.env));
    });
}
