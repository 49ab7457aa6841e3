import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import { everyCommand } from "./command-tree.ts";
import { SCRIPTS, type Shell } from "./completion-scripts.ts";
import { print } from "./terminal.ts";

/** Adds the actions of the commands that print the script for a shell and answer its completion requests. */
export function complete(program: Command): void {
  const completion = program.commands.find((command) => command.name() === "completion");
  // The command `completion` is not itself completed.
  (program.commands as Command[]).splice(program.commands.indexOf(completion as Command), 1);
  // A shell has room for a few words next to each command.
  for (const command of everyCommand(program)) command.description(command.summary() || command.description());
  const completer = tab(program, { completionCommandName: "completion" });
  commandOf(program, "completion").action((shell: Shell) => print(SCRIPTS[shell]));
  commandOf(program, "complete").action((words: string[]) => completer.parse(words.map(withoutQuotes)));
}

function commandOf(program: Command, name: string): Command {
  return program.commands.find((command) => command.name() === name) as Command;
}

/** Removes the quotes that were typed. `"op` is the beginning of a quoted word. */
function withoutQuotes(word: string): string {
  return word.replace(/^(["'])(.*?)\1?$/s, "$2");
}
