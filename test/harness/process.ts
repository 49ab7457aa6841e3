import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";

export const root = join(import.meta.dirname, "../..");
export const main = join(root, "dist/main.js");

export type ProcessOptions = {
  args?: readonly string[];
  /** Written to gateway.json5 in the process's folder, where it is found without a flag. Undefined starts a try-out. */
  config?: object | string;
  /** In addition to PATH and HOME; nothing else is inherited. */
  env?: Record<string, string>;
  /** Options for Node itself. */
  node?: readonly string[];
  /** Changes the usual command line, to run the process by npm or from a shell. It gets its own process group. */
  command?: (usual: readonly string[]) => readonly string[];
  /** Its working folder; by default a temporary one. */
  cwd?: string;
  /** The context of the test, for concurrent tests. */
  onFinished?: typeof onTestFinished;
};

export type LogRecord = { time: string; level: string; event: string } & Record<string, unknown>;
type Exit = { code: number | null; signal: NodeJS.Signals | null };
type Secrets = { REST_API_KEY: string; RPC_TOKEN: string; WEBHOOK_TOKEN: string; CONSOLE_TOKEN: string };

/** Starts the gateway and waits until it listens: `await using gateway = await startProcess({ … })`. */
export async function startProcess(options: ProcessOptions = {}): Promise<GatewayProcess> {
  const gateway = new GatewayProcess(options);
  try {
    await gateway.until(() => gateway.url !== "");
    return gateway;
  } catch (error) {
    await gateway[Symbol.asyncDispose]();
    throw error;
  }
}

/** Runs the gateway to its end: a refused start, or one that only prints something. */
export async function runProcess(options: ProcessOptions): Promise<Exit & { out: string; err: string }> {
  await using gateway = new GatewayProcess(options);
  const exit = await gateway.exited;
  return { ...exit, out: gateway.out.join("\n"), err: gateway.err.join("\n") };
}

/** The gateway as its user runs it, or its output if it does not run. */
export class GatewayProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly folder: string;
  /** Every line of standard output and of standard error, in order. */
  readonly out: string[] = [];
  readonly err: string[] = [];
  readonly records: LogRecord[] = [];
  readonly exited: Promise<Exit>;
  readonly #ownFolder: boolean;
  readonly #ownGroup: boolean;
  readonly #heard = new Set<() => void>();
  #ended = false;

  constructor(options: ProcessOptions) {
    this.#ownFolder = options.cwd === undefined;
    this.#ownGroup = options.command !== undefined;
    this.folder = options.cwd ?? mkdtempSync(join(tmpdir(), "gateway-"));
    if (options.config !== undefined) this.configure(options.config);
    const usual = [process.execPath, ...(options.node ?? []), main, "--port", "0", ...(options.args ?? [])];
    const [command = "", ...args] = options.command?.(usual) ?? usual;
    const { PATH = "", HOME = "" } = process.env;
    const env = { PATH, HOME, ...options.env };
    const stdio: StdioOptions = ["ignore", "pipe", "pipe"];
    this.child = spawn(command, args, { cwd: this.folder, env, stdio, detached: this.#ownGroup });
    // A test that timed out never disposes of it.
    (options.onFinished ?? onTestFinished)(() => this.end());
    this.#read(this.child.stdout as Readable, this.out);
    this.#read(this.child.stderr as Readable, this.err);
    this.exited = once(this.child, "close").then(([code, signal]) => {
      this.#ended = true;
      this.#ring();
      return { code, signal } as Exit;
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Its address in the log; empty before that. */
  get url(): string {
    const line = this.out.find((text) => /\blistening\b/.test(text)) ?? "";
    return /https?:\/\/[^\s"]+/.exec(line)?.[0] ?? "";
  }

  /** The secrets of the try-out, as shown on the terminal. */
  get secrets(): Secrets {
    const shown = this.out.flatMap((line) => /^ {2}([A-Z_]+) {2,}(\S+)$/.exec(line)?.slice(1) ?? []);
    const pairs = shown.flatMap((name, n) => (n % 2 === 0 ? [[name, shown[n + 1]]] : []));
    return Object.fromEntries(pairs) as Secrets;
  }

  /** Its complete output. */
  get output(): string {
    return [...this.out, ...this.err].join("\n");
  }

  /** Writes its configuration file. */
  configure(config: object | string): void {
    const text = typeof config === "string" ? config : JSON.stringify(config, null, 2);
    writeFileSync(join(this.folder, "gateway.json5"), text);
  }

  /** Waits for a text in its output, past or future. Throws with its complete output if it ends before. */
  async until<T>(find: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined && found !== false) return found;
      if (this.#ended) throw new Error(`The gateway ended before that:\n${this.output}`);
      await new Promise<void>((resolve) => this.#heard.add(resolve));
    }
  }

  /** Waits for a log line of this event, past or future; `nth` counts from 1. */
  logged(event: string, nth = 1): Promise<LogRecord> {
    return this.until(() => this.records.filter((record) => record.event === event)[nth - 1]);
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  killGroup(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal);
  }

  /** Ends it with its process group, in any state. */
  end(): void {
    if (this.#ended) return;
    if (this.#ownGroup) this.killGroup("SIGKILL");
    else this.kill("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end();
    await this.exited;
    if (this.#ownFolder) rmSync(this.folder, { recursive: true, force: true });
  }

  #read(stream: Readable, lines: string[]): void {
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      if (lines === this.out && line.startsWith("{")) this.records.push(JSON.parse(line) as LogRecord);
      this.#ring();
    });
  }

  #ring(): void {
    const waiting = [...this.#heard];
    this.#heard.clear();
    for (const wake of waiting) wake();
  }
}
