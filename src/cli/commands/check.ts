import type { Command } from "commander";
import { print, say } from "../terminal.ts";

export function addCheck(program: Command): void {
  program
    .command("check")
    .summary("check a configuration")
    .description("Reads a configuration like `serve`, and lists all its mistakes. Does not start anything.")
    .argument("[file]", "the configuration (default: $GATEWAY_CONFIG, else ./gateway.json5)")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExamples:\n  agent-gateway check\n  agent-gateway check staging.json5 --json")
    .action(async (file: string | undefined, options: { json?: boolean }) => {
      const { checkConfig } = await import("../check-config.ts");
      const { problems, warnings, summary } = await checkConfig(file, process.env);
      if (options.json) print(JSON.stringify({ ok: problems.length === 0, problems, warnings }, null, 2));
      else {
        for (const warning of warnings) say(`Warning: ${warning}`);
        if (problems.length === 0) print(summary);
      }
      if (problems.length === 0) return;
      if (!options.json) say(problems.map(({ words }) => words).join("\n"));
      process.exitCode = 1;
    });
}
