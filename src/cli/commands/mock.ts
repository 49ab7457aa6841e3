import type { Command } from "commander";
import { say } from "../terminal.ts";
import { wholeNumber } from "../values.ts";

export function addMock(program: Command): void {
  program
    .command("mock")
    .summary("serve the contract with example answers")
    .description(
      "Serves REST, webhooks and RPC with the examples of the contract, for people who build against a gateway without having one. Nothing runs, and nothing is kept. Any token is good.",
    )
    .option("--host <host>", "the address to listen on", "127.0.0.1")
    .option("--port <port>", "the port to listen on", "18789")
    .addHelpText(
      "after",
      "\nEvery answer has the header x-mock. `Prefer: code=429` asks for the example of another status.\nRPC needs the package @open-rpc/server-js.\n\nExamples:\n  agent-gateway mock\n  curl -H 'Prefer: code=429' -d '{\"message\":\"Hi\"}' http://127.0.0.1:18789/api/v1/chat/send",
    )
    .action(async (options: { host: string; port: string }) => {
      const { startMock } = await import("../mock.ts");
      const url = await startMock(options.host, wholeNumber(options.port, "--port", 0));
      say(`The mock listens on ${url}. Ctrl-C ends it.`);
    });
}
