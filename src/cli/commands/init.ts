import { type Command, Option } from "commander";
import type { InitOptions } from "../init.ts";
import { say } from "../terminal.ts";

export function addInit(program: Command): void {
  program
    .command("init")
    .summary("create a configuration")
    .description(
      "Asks some questions, and writes gateway.json5 with comments and gateway.env with new secrets. It does not overwrite files.",
    )
    .argument("[folder]", "the folder to write to (default: this one)")
    .addOption(
      new Option("--template <name>", "the configuration to start from").choices([
        "empty",
        "github-review",
        "daily-brief",
      ]),
    )
    .option("--agent <name>", "the agent's name")
    .addOption(
      new Option("--backend <kind>", "the backend of the agent").choices([
        "echo",
        "openai",
        "anthropic",
        "openai-compatible",
        "http",
        "command",
      ]),
    )
    .option("--model <name>", "the model, for model providers")
    .option("--target <target>", "the address (openai-compatible, http), or the command line (command)")
    .option("--port <port>", "the port to listen on")
    .addOption(new Option("--store <kind>", "the store").choices(["memory", "sqlite"]))
    .option("-y, --yes", "do not ask; use the options, and defaults for the rest")
    .addHelpText(
      "after",
      "\nExamples:\n  agent-gateway init\n  agent-gateway init reviews --template github-review --yes\n  agent-gateway init my-gateway --backend anthropic --model claude-sonnet-4-5 --yes\n  agent-gateway init --backend command --target 'python3 agent.py' --yes",
    )
    .action(async (folder: string | undefined, options: InitOptions) => {
      const { init } = await import("../init.ts");
      say(await init(folder ?? ".", options));
    });
}
