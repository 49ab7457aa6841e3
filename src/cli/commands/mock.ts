import type { Command } from "commander";
import { say } from "../terminal.ts";
import { wholeNumber } from "../values.ts";

export function addMock(program: Command): void {
  program
    .command("mock")
    .summary("serve the examples of the contract")
    .description(
      "Serves REST, webhooks and RPC with the examples of the contract, for developing clients without a gateway. It does not run agents or store data, and accepts any token.",
    )
    .option("--host <host>", "the address to listen on", "127.0.0.1")
    .option("--port <port>", "the port to listen on", "18789")
    .addHelpText(
      "after",
      "\nEvery answer has the header x-mock. `Prefer: code=429` requests the example of another status.\nRPC needs the package @open-rpc/server-js.\n\nExamples:\n  agent-gateway mock\n  curl -H 'Prefer: code=429' -d '{\"message\":\"Hi\"}' http://127.0.0.1:18789/api/v1/chat/send",
    )
    .action(async (options: { host: string; port: string }) => {
      const { startMock } = await import("../mock.ts");
      const url = await startMock(options.host, wholeNumber(options.port, "--port", 0));
      say(`The mock listens on ${url}. Ctrl-C ends it.`);
    });
}
