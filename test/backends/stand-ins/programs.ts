import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { createCommandBackend } from "#backends/command/command.ts";
import { systemClock } from "#kit/clock.ts";
import type { BackendError } from "#kit/errors.ts";
import { collect, textOf, turnOf } from "../suite.ts";

const folder = import.meta.dirname;

type CommandOptions = {
  output?: "text" | "json-lines";
  cwd?: string;
  env?: Record<string, string>;
  said?: { line: string }[];
};

/** A command backend for a program, and what it wrote to standard error. */
export function commandOf(
  run: readonly string[],
  { output = "text", cwd = folder, env = {}, said = [] }: CommandOptions = {},
) {
  return createCommandBackend({
    run,
    cwd,
    env,
    output,
    agent: "main",
    models: [],
    clock: systemClock,
    events: { programSaid: (line) => void said.push(line) },
  });
}

/** A short program for the shell. */
export function shell(script: string, options?: CommandOptions) {
  return commandOf(["sh", "-c", script], options);
}

export function sh(name: string, ...args: string[]): string[] {
  return ["sh", join(folder, name), ...args];
}

type Runs = Pick<ReturnType<typeof commandOf>, "run">;

export async function replyOf(backend: Runs, text = "Hello", signal = new AbortController().signal): Promise<string> {
  return textOf(await collect(backend.run(turnOf({ message: { text, outside: false, context: undefined } }), signal)));
}

export function failureOf(running: Promise<unknown>): Promise<BackendError> {
  return running.then(
    () => Promise.reject(new Error("it did not fail")),
    (error: BackendError) => error,
  );
}

/** Whether a process exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** Resolves when these processes have ended. */
export async function untilGone(pids: readonly number[]): Promise<void> {
  // Not with `expect.poll`, which does not support concurrent tests.
  await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), { interval: 5, timeout: 30_000 });
}

/** The process ids in a program's reply, and the reply so far. */
export function pidsIn(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}
