import type { Command } from "commander";
import { nearest } from "#kit/nearest.ts";
import { UsageError } from "./failures.ts";

/** The command as it is typed. */
export function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

/** A command with all that are below it. */
export function* everyCommand(command: Command): Generator<Command> {
  yield command;
  for (const inner of command.commands) yield* everyCommand(inner);
}

/** The error for an unknown command, with a suggestion. */
export function noCommand(parent: Command, name: string): UsageError {
  const meant = nearest(
    name,
    parent.commands.map((command) => command.name()),
  );
  return new UsageError(
    `There is no command ${[...nameOf(parent).split(" ").slice(1), name].join(" ")}.${meant ? ` Did you mean ${meant}?` : ""}`,
    `${nameOf(parent)} --help`,
  );
}
