import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock } from "#kit/clock.ts";
import { createGroup } from "./group.ts";
import { environmentOf, type Program, programFlaw } from "./program.ts";
import { readStderr, type StderrLine } from "./stderr.ts";

export type ProgramEnd = { code: number | null; signal: NodeJS.Signals | null };

/** A running program, in a separate process group. */
export type RunningProgram = {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** How its first process ended. The rest of its group is killed then; its output may not have been read yet. */
  readonly ended: Promise<ProgramEnd>;
  /** The last line of its standard error, for the log only. */
  lastWords(): string | undefined;
  /** Asks the whole group to end, and after `graceMs` makes it. Resolves when none of it is left. */
  stop(graceMs?: number): Promise<void>;
  /** Resolves when it was stopped and none of it is left. */
  readonly exited: Promise<void>;
};

/** A program could not be started. The message is for the log: it names files. */
export class ProgramNotStarted extends Error {
  override readonly name = "ProgramNotStarted";
  /** The machine lacks something that it may have in a moment: processes, memory, file descriptors. */
  readonly isShortage: boolean;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.isShortage = ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"].includes(code ?? "");
  }
}

type ProgramParts = {
  /** Hears what it writes to standard error. */
  say: (said: StderrLine) => void;
  clock?: Clock;
};

const GRACE_MS = 1_000;
/** The wait for the end of its standard error: a process that left its group may hold that open. */
const LAST_WORDS_MS = 100;

/** Starts a program. It gets no more of the gateway's environment than it cannot be without, and none of its files. */
export async function startProgram(
  program: Program,
  { say, clock = systemClock }: ProgramParts,
): Promise<RunningProgram> {
  const child = await spawned(program);
  const pid = child.pid as number;
  const group = createGroup(pid, clock);
  const heard = readStderr(child.stderr, clock, say);
  let isStopping = false;
  let resolveExited = () => {};
  const exited = new Promise<void>((resolve) => (resolveExited = resolve));
  // The exit code shows that a program ended before it had read everything.
  child.stdin.on("error", () => {});
  const ended = new Promise<ProgramEnd>((resolve) => {
    child.once("exit", (code, signal) => {
      if (!isStopping) void group.kill();
      const tell = () => resolve({ code, signal });
      if (child.stderr.closed) return tell();
      const forget = clock.after(LAST_WORDS_MS, tell);
      child.stderr.once("close", () => {
        forget();
        tell();
      });
    });
  });
  return {
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    ended,
    lastWords: heard.last,
    exited,
    stop: async (graceMs = GRACE_MS) => {
      isStopping = true;
      child.stdin.destroy();
      child.stdout.destroy();
      await group.stop(graceMs);
      await ended;
      child.stderr.destroy();
      resolveExited();
    },
  };
}

async function spawned(program: Program): Promise<ChildProcessByStdio<Writable, Readable, Readable>> {
  const [command = "", ...args] = program.run;
  let code: string | undefined;
  try {
    const child = spawn(command, args, {
      cwd: program.cwd,
      env: environmentOf(program),
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    const failed = new Promise<NodeJS.ErrnoException>((resolve) => child.on("error", resolve));
    if (child.pid !== undefined) return child;
    code = (await failed).code;
  } catch (error) {
    code = (error as NodeJS.ErrnoException).code;
  }
  const flaw = programFlaw(program);
  throw new ProgramNotStarted(flaw ? `${flaw.at} ${flaw.message}` : `the system answers ${code}`, code);
}
