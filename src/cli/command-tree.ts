import type { Command } from "commander";

/** The command as it is typed. */
export const nameOf = (command: Command): string =>
  command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();

/** A command with all that are below it. */
export function* everyCommand(command: Command): Generator<Command> {
  yield command;
  for (const inner of command.commands) yield* everyCommand(inner);
}
