import type { Command } from "commander";
import { calling } from "../calling.ts";
import { print, say, withProgress } from "../terminal.ts";
import { needFolderOf } from "../values.ts";

export function addDiagnostics(program: Command): void {
  const diagnostics = program
    .command("diagnostics")
    .summary("collect information for finding problems")
    .description("Information that helps others to find a problem.");
  calling(
    diagnostics
      .command("export")
      .summary("write a bundle without secrets")
      .description(
        "Writes versions, health, the configuration without secrets, the latest failures and the metrics into a JSON file without tokens, messages and bodies.",
      )
      .argument("[file]", "the new file; - for standard output (default: gateway-diagnostics.json)")
      .addHelpText(
        "after",
        "\nCheck the file before you send it to others.\n\nExample:\n  agent-gateway diagnostics export",
      ),
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
