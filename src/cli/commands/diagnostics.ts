import type { Command } from "commander";
import { calling } from "../calling.ts";
import { print, say, withProgress } from "../terminal.ts";
import { needFolderOf } from "../values.ts";

export function addDiagnostics(program: Command): void {
  const diagnostics = program
    .command("diagnostics")
    .summary("gather what helps to find a fault")
    .description("What helps somebody else to find a fault.");
  calling(
    diagnostics
      .command("export")
      .summary("write a bundle without secrets")
      .description(
        "Writes versions, health, the configuration without secrets, the latest failures and the metrics into one JSON file. It holds no token, no message and no body.",
      )
      .argument("[file]", "the new file; - for standard output (default: gateway-diagnostics.json)")
      .addHelpText("after", "\nRead it before you send it to anybody.\n\nExample:\n  agent-gateway diagnostics export"),
    async (given, file: string = "gateway-diagnostics.json") => {
      const { gatherDiagnostics, writeNew } = await import("../diagnostics.ts");
      if (file !== "-") needFolderOf(file);
      const bundle = JSON.stringify(await withProgress("gathering", gatherDiagnostics(given)), null, 2);
      if (file === "-") return print(bundle);
      writeNew(file, bundle, 0o600);
      say(
        `${file} is written, ${Math.ceil(bundle.length / 1_024)} kB. It holds no secrets; read it before you send it.`,
      );
    },
  );
}
