import { type Argument, Command, CommanderError } from "commander";
import { nearest } from "#kit/nearest.ts";
import { version } from "../version.ts";
import { everyCommand, nameOf } from "./command-tree.ts";
import { addCommands } from "./commands/all.ts";
import { exitCodeOf, USAGE, wordsFor } from "./failures.ts";
import { assumeWidth, say, write } from "./terminal.ts";
import { asTyped } from "./typed.ts";

/** Runs the command line. It never throws: it prints, and sets the exit code. */
export async function run(args: readonly string[]): Promise<void> {
  // A reader such as `head` closes the pipe when it has read enough. That is not a failure.
  process.stdout.on("error", async (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    const { fileFault } = await import("./values.ts");
    say(`The output cannot be written: ${fileFault(error)}.`);
    process.exit(1);
  });
  assumeWidth();
  const program = createProgram();
  let running = program;
  program.hook("preAction", (_, command) => {
    running = command;
  });
  try {
    // A shell asks by `complete -- …` what may follow.
    if (args[0] === "completion" || args[0] === "complete") (await import("./completion.ts")).complete(program);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed the help, the version or the mistake.
      process.exitCode = error.exitCode === 0 ? 0 : USAGE;
      return;
    }
    say(wordsFor(error, nameOf(running)));
    process.exitCode = exitCodeOf(error);
  }
}

/** The command line with all commands. Nothing of the gateway or its client is loaded before a command runs. */
export function createProgram(): Command {
  const program = new Command("agent-gateway")
    .description("A gateway in front of conversational agents: runs it, and calls it.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print help; after a command, the help of the command")
    .helpCommand(false)
    .showHelpAfterError(false)
    .enablePositionalOptions()
    .addHelpText("after", OUTRO);
  addCommands(program);
  for (const command of everyCommand(program)) configure(command, command === program);
  return program;
}

/** Sets the help and the error output of a command. */
function configure(command: Command, isProgram: boolean): void {
  command.exitOverride().helpCommand(false);
  command.configureHelp({
    subcommandTerm: (inner) => [inner.name(), ...inner.registeredArguments.map(argumentTerm)].join(" ").trim(),
  });
  command.configureOutput({
    writeOut: (text) => write(process.stdout, text),
    writeErr: (text) => write(process.stderr, text),
    outputError: (text) =>
      say(
        missingArgument(command, text) ??
          `${sentenceOf(text)}${optionMeant(command, text)}\nNext: ${asTyped(`${nameOf(command)} --help`)}`,
      ),
  });
  if (!isProgram) command.helpOption("-h, --help", "print this");
}

/** Commander's words about a mistake, as one sentence: `Unknown option '--prot'. Did you mean --port?` */
function sentenceOf(text: string): string {
  const [mistake = "", guess] = text
    .trim()
    .replace(/^error: (.)/, (_, first: string) => first.toUpperCase())
    .split(/\n\(/);
  return guess === undefined ? `${mistake.replace(/\.$/, "")}.` : `${mistake}. ${guess.replace(/\)$/, "")}`;
}

/** The error for a missing argument, with its description and the usage of the command. */
function missingArgument(command: Command, text: string): string | undefined {
  const [, name] = /^error: missing required argument '([^']+)'/.exec(text) ?? [];
  const missing = command.registeredArguments.find((argument) => argument.name() === name);
  if (missing === undefined) return undefined;
  const usage = [nameOf(command), ...command.registeredArguments.map(argumentTerm)].join(" ");
  return `The argument <${name}> is missing: ${missing.description}.\nNext: ${asTyped(usage)}`;
}

/** A suggestion for an unknown option, if Commander has none: `--strem` means `--no-stream`. */
function optionMeant(command: Command, text: string): string {
  const [, given] = /^error: unknown option '--([^'=]+)/.exec(text) ?? [];
  if (given === undefined || text.includes("Did you mean")) return "";
  const options = new Map(command.options.map(({ long }) => [long?.replace(/^--(no-)?/, "") ?? "", long]));
  const meant = options.get(nearest(given, [...options.keys()]) ?? "");
  return meant ? ` Did you mean ${meant}?` : "";
}

function argumentTerm(argument: Argument): string {
  // It stands for a command that is not there.
  if (argument.name() === "unknown") return "";
  return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
}

const OUTRO = `
Commands that call a gateway find it by --url and the token options, else by GATEWAY_URL, REST_API_KEY,
RPC_TOKEN, WEBHOOK_TOKEN and CONSOLE_TOKEN, else by the gateway.json5 in this folder.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not reachable, 4 not allowed, 5 not found, 6 refused by a limit,
7 the turn failed, 130 ended by Ctrl-C.`;
