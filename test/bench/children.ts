import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { CLIENT_CORE, pinned } from "./machine.ts";

const running = new Set<ChildProcess>();

function killAll() {
  for (const child of running) child.kill("SIGKILL");
}

let guarded = false;
function guardOnce() {
  if (guarded) return;
  guarded = true;
  process.on("exit", killAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));
}

/** Starts a process that ends with this one. */
export function startChild(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  guardOnce();
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"], ...options });
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.on("error", () => running.delete(child));
  return child;
}

export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** Runs a program to its end and returns its output; throws if it failed or took longer than `timeoutMs`. */
export async function runProgram(
  command: string,
  args: readonly string[],
  { timeoutMs, ...options }: SpawnOptions & { timeoutMs: number },
): Promise<string> {
  const child = startChild(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on("data", (part: Buffer) => out.push(part));
  child.stderr?.on("data", (part: Buffer) => err.push(part));
  try {
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    if (code === 0) return Buffer.concat(out).toString();
    const words = Buffer.concat([...out, ...err])
      .toString()
      .trim();
    throw new Error(`${command} ended with ${code ?? signal}: ${words.slice(-2_000)}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for one message of a child over its IPC channel; throws if the child ends first. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown) => {
      child.off("exit", onExit);
      resolve(message as T);
    };
    const onExit = (code: number | null, signal: string | null) => {
      child.off("message", onMessage);
      reject(new Error(`the process ended with ${code ?? signal} before it answered`));
    };
    child.once("message", onMessage);
    child.once("exit", onExit);
  });
}

/** Starts a program of the bench on the client's core; resolves with it and with its first message. */
export async function startOnClientCore<T>(file: string, options: object) {
  const [command, args] = pinned(CLIENT_CORE, process.execPath, [file, JSON.stringify(options)]);
  const child = startChild(command, args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  return { child, said: await nextMessage<T>(child) };
}
