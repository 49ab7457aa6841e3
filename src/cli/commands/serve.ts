import type { Command } from "commander";
import { noCommand } from "../command-tree.ts";
import type { ServeOptions } from "../serve.ts";
import { isTerminal, print } from "../terminal.ts";

export function addServe(program: Command): void {
  program
    .command("serve", { isDefault: true })
    .summary("run the gateway")
    .description(
      "Runs the gateway until it gets a signal. Without a configuration it runs a try-out with an agent that repeats each message.",
    )
    .option("--config <file>", "the configuration (default: $GATEWAY_CONFIG, else ./gateway.json5, else a try-out)")
    .option("--host <host>", "the address to listen on, instead of $GATEWAY_HOST and the file")
    .option("--port <port>", "the port to listen on, instead of $GATEWAY_PORT and the file (default: 18789)")
    .addHelpText("after", DETAILS)
    // An unknown command is passed as an argument.
    .argument("[unknown]")
    .allowExcessArguments()
    .action(async (unknown: string | undefined, options: ServeOptions) => {
      if (unknown !== undefined) throw noCommand(program, unknown);
      if (isBare() && isTerminal(process.stdout)) {
        const { wouldServe } = await import("../would-serve.ts");
        program.outputHelp();
        return print(`\n${wouldServe(process.env)}`);
      }
      const { serve } = await import("../serve.ts");
      await serve(options, process.env);
    })
    .usage("[options]");
}

/** Whether the program was called without arguments. `npm start` passes none either, but serves. */
function isBare(): boolean {
  return process.argv.length === 2 && process.env.npm_lifecycle_event !== "start";
}

const DETAILS = `
Variables that are not set are read from gateway.env next to the configuration, if that file exists.

Environment:
  LOG_LEVEL   debug, info, warn or error
  LOG_FORMAT  json or pretty (default: pretty in a terminal, json elsewhere)
  NO_COLOR    no colours

Without the word serve, agent-gateway also runs the gateway if it has one of these options, or if standard output is not a terminal.

Signals: SIGHUP reloads the configuration and the skills. SIGTERM and SIGINT finish running turns, then stop; a second one stops immediately.

Examples:
  agent-gateway serve
  agent-gateway serve --config /etc/agent-gateway/gateway.json5 --port 8080`;
