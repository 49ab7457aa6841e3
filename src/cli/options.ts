import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearest } from "#kit/nearest.ts";

/** A mistake of the person at the terminal: a sentence, no stack. */
export class UsageError extends Error {}

type Options = NonNullable<ParseArgsConfig["options"]>;

/** Reads a command's options. Throws a UsageError that names those there are. */
export const parseOptions = <const T extends Options>(
  args: readonly string[],
  options: T,
  allowPositionals = false,
): ReturnType<typeof parseArgs<{ options: T; allowPositionals: boolean }>> => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals });
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(". ");
    const unknown = /^Unknown option '(.+)'$/.exec(sentence)?.[1];
    if (unknown === undefined) throw new UsageError(`${sentence}. --help lists the options.`);
    const names = Object.keys(options).map((name) => `--${name}`);
    throw new UsageError(`There is no option ${unknown}.${meant(unknown, names)}`);
  }
};

/** The name that was meant, if one is near, and all there are. */
export const meant = (given: string, names: readonly string[]): string => {
  const near = nearest(given, names);
  return `${near ? ` Did you mean ${near}?` : ""} There are: ${names.join(", ")}.`;
};
