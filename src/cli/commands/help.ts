import type { Command } from "commander";
import { noCommand } from "../command-tree.ts";

export function addHelp(program: Command): void {
  program
    .command("help")
    .summary("print help")
    .description("Prints the help of a command, or of the program.")
    .argument("[command...]", "the command, such as: keys create")
    .addHelpText("after", "\nExample:\n  agent-gateway help keys create")
    .action((names: readonly string[]) => {
      let command = program;
      for (const name of names) {
        const inner = command.commands.find((one) => one.name() === name || one.aliases().includes(name));
        if (!inner) throw noCommand(command, name);
        command = inner;
      }
      command.outputHelp();
    });
}
