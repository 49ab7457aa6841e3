import type { Command } from "commander";
import type { BackupOptions } from "../backup.ts";
import { print } from "../terminal.ts";

export function addBackup(program: Command): void {
  program
    .command("backup")
    .summary("copy the SQLite store into a file")
    .description("Copies the SQLite store into a new file while the gateway runs. The copy is consistent.")
    .argument("<to>", "the new file")
    .option("--config <file>", "the configuration that names the store (default: as for serve)")
    .option("--store <file>", "the file of the store; then the configuration and its secrets are not needed")
    .addHelpText("after", "\nExample:\n  agent-gateway backup /var/backups/gateway-$(date +%F).db")
    .action(async (to: string, options: BackupOptions) => {
      const { backup } = await import("../backup.ts");
      print(await backup(to, options, process.env));
    });
}
