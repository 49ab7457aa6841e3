import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import { everyCommand } from "./command-tree.ts";

/** Puts the commands in place that print the script for a shell, and answer the shell's questions. */
export const complete = (program: Command): void => {
  const shown = program.commands.findIndex((command) => command.name() === "completion");
  (program.commands as Command[]).splice(shown, 1);
  // A shell has room for a few words beside each command.
  for (const command of everyCommand(program)) command.description(command.summary() || command.description());
  tab(program, { completionCommandName: "completion" });
};
