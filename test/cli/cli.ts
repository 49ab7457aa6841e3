import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { main } from "#test/harness/process.ts";

export type CliOptions = {
  cwd?: string;
  env?: Record<string, string>;
  /** Written to standard input, which is otherwise empty. */
  input?: string;
  /** Leaves standard input open, for `type`. */
  isOpen?: boolean;
  /** Runs it on a separate terminal, where standard output and standard error are the same. */
  terminal?: boolean;
  /** The width of the terminal, 80 by default. A terminal of unknown width has 0. */
  columns?: number;
};

/** The program as an installation links it, so that hints have its name. Test files share this module. */
function installed(): string {
  const folder = emptyFolder((end) => process.once("exit", end));
  symlinkSync(main, join(folder, "agent-gateway"));
  return join(folder, "agent-gateway");
}

type CliResult = { code: number | null; out: string; err: string };

/** Runs a command to its end, as a process of its own. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const cli = startCli(args, options);
  return await cli.ended;
}

/** Starts a command that runs until it is stopped. */
export function startCli(args: readonly string[], options: CliOptions = {}) {
  const { cwd = emptyFolder(), env, input, isOpen, terminal, columns = 80 } = options;
  const { PATH = "", HOME = "" } = process.env;
  const command = [process.execPath, program, ...args];
  const [first = "", ...rest] = terminal
    ? ["script", "-qefc", `stty cols ${columns} rows 40; exec ${command.map(quoted).join(" ")}`, "/dev/null"]
    : command;
  const terminalEnv = terminal ? { TERM: "xterm-256color", SHELL: "/bin/sh" } : {};
  const child = spawn(first, rest, { cwd, env: { PATH, HOME, ...terminalEnv, ...env }, stdio: "pipe" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const result = { code: null as number | null, out: "", err: "" };
  const listeners = new Set<() => void>();
  const heard = (): void => {
    for (const listener of listeners) listener();
  };
  child.stdout.setEncoding("utf8").on("data", (text) => {
    result.out += text;
    heard();
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    result.err += text;
    heard();
  });
  if (input !== undefined || !(terminal || isOpen)) child.stdin.end(input);
  const ended = once(child, "close").then(([code]): CliResult => {
    result.code = code;
    heard();
    return result;
  });
  return {
    child,
    result,
    ended,
    type: (text: string): void => void child.stdin.write(text),
    /** Waits for a text in its output, past or future. */
    until: async (find: (result: CliResult) => boolean): Promise<void> => {
      while (!find(result)) {
        if (result.code !== null)
          throw new Error(`It ended with ${result.code} before that:\n${result.out}\n${result.err}`);
        await new Promise<void>((resolve) => {
          const listener = (): void => {
            listeners.delete(listener);
            resolve();
          };
          listeners.add(listener);
        });
      }
    },
  };
}

/** A folder without a configuration, deleted after the test, or after the tests of a file. */
export function emptyFolder(onFinished: (end: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "cli-"));
  onFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

const program = installed();

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
