import type { Command } from "commander";
import type { AddressOptions } from "../address.ts";

export function addMcp(program: Command): void {
  program
    .command("mcp")
    .summary("serve a gateway's MCP tools over standard input and output (stdio)")
    .description(
      "Reads MCP messages from standard input, sends them to the gateway's /mcp, and writes the answers to standard output. An MCP client starts it, and gets the same tools as over HTTP. It runs until standard input ends.",
    )
    .optionsGroup("Which gateway:")
    .option("--url <url>", "its address")
    .option("--key <key>", "a REST key; other users of the machine can read it, unlike REST_API_KEY")
    .option("--config <file>", "the configuration that names them")
    .addHelpText(
      "after",
      "\nSet gateway.mcp.enabled in the gateway's configuration. The scopes of the key decide which tools the client gets.\n\nExample:\n  claude mcp add --env REST_API_KEY=$REST_API_KEY --transport stdio gateway -- agent-gateway mcp",
    )
    .action(async (options: AddressOptions) => {
      const { findAddress } = await import("../address.ts");
      const { runBridge } = await import("../mcp-bridge.ts");
      await runBridge(await findAddress(options, process.env));
    });
}
