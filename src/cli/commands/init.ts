import { type Command, Option } from "commander";
import type { InitOptions } from "../init.ts";
import { say } from "../terminal.ts";

export function addInit(program: Command): void {
  program
    .command("init")
    .summary("write a configuration to begin with")
    .description(
      "Asks a few things, and writes gateway.json5 with comments and gateway.env with fresh secrets. It overwrites nothing.",
    )
    .argument("[folder]", "where to write (default: here)")
    .option("--agent <name>", "the agent's name")
    .addOption(
      new Option("--backend <kind>", "what answers for the agent").choices([
        "echo",
        "openai",
        "anthropic",
        "openai-compatible",
        "http",
        "command",
      ]),
    )
    .option("--model <name>", "the model, for the backends that are models")
    .option("--target <target>", "the address of openai-compatible and http, or the command line of command")
    .option("--port <port>", "the port to listen on")
    .addOption(new Option("--store <kind>", "where it keeps what it knows").choices(["memory", "sqlite"]))
    .option("-y, --yes", "ask nothing: take the options, and defaults for the rest")
    .addHelpText(
      "after",
      "\nExamples:\n  agent-gateway init\n  agent-gateway init my-gateway --backend anthropic --model claude-sonnet-4-5 --yes\n  agent-gateway init --backend command --target 'python3 agent.py' --yes",
    )
    .action(async (folder: string | undefined, options: InitOptions) => {
      const { init } = await import("../init.ts");
      say(await init(folder ?? ".", options));
    });
}
