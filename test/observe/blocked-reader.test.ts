import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { buildSync } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

interface Told {
  lines: number;
  dropped: number;
  written: boolean;
}

interface Writer {
  child: ChildProcess;
  /** Its standard output, which is not read until the test does so. */
  output: Readable;
  tell(message: object): Promise<Told>;
}

let program: string;
let folder: string;
let running: ChildProcess[] = [];

// Compiled once for all of them.
beforeAll(() => {
  program = join(mkdtempSync(join(tmpdir(), "log-writer-")), "log-writer.cjs");
  const entryPoints = [join(import.meta.dirname, "log-writer.ts")];
  buildSync({ entryPoints, outfile: program, bundle: true, format: "cjs", platform: "node", target: "node20.19" });
});
afterAll(() => rmSync(dirname(program), { recursive: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "log-"));
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running = [];
  rmSync(folder, { recursive: true });
});

async function startWriter(stdout: "pipe" | number): Promise<Writer> {
  const child = spawn(process.execPath, [program], { stdio: ["ignore", stdout, "inherit", "ipc"] });
  running.push(child);
  await once(child, "message");
  const tell = async (message: object) => {
    child.send(message);
    return (await once(child, "message"))[0] as Told;
  };
  return { child, output: child.stdout as Readable, tell };
}

/** Node creates a socket pair as a child's pipe. */
function onSocket() {
  return startWriter("pipe");
}

/** A shell creates a pipe. */
async function onPipe(): Promise<Writer> {
  const path = join(folder, `pipe-${running.length}`);
  execFileSync("mkfifo", [path]);
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  const writer = await startWriter(writeEnd);
  closeSync(writeEnd);
  return { ...writer, output: new Socket({ fd: readEnd, readable: true, writable: false }).pause() };
}

/** Reads from now on; `until` waits for an event and returns all output. */
function read(output: Readable) {
  const records: Array<Record<string, unknown>> = [];
  const lines = createInterface({ input: output });
  lines.on("line", (line) => records.push(JSON.parse(line) as Record<string, unknown>));
  const until = async (event: string) => {
    while (!records.some((record) => record.event === event)) await once(lines, "line");
    return records;
  };
  return { until };
}

describe.each([
  ["a socket", onSocket],
  ["a pipe", onPipe],
])("F26: the log's reader blocks, at %s", (_, start) => {
  it("never waits, drops lines above its limit, and reports their number once the reader reads again", async () => {
    const { output, tell } = await start();
    const stalled = await tell({ flood: 500 });
    expect(stalled.dropped).toBeGreaterThan(100);

    const reader = read(output);
    const records = [...(await reader.until("log.dropped"))];
    const kept = records.filter(({ event }) => event === "flood").map(({ n }) => n);
    expect(kept).toEqual(Array.from({ length: stalled.lines - stalled.dropped }, (_, n) => n));
    expect(records.at(-1)).toMatchObject({ level: "warn", lines: stalled.dropped, total: stalled.dropped });

    expect(await tell({ line: "after" })).toEqual({ dropped: stalled.dropped });
    expect((await reader.until("after")).at(-1)).toMatchObject({ event: "after" });
  });

  it("lets the process end while the reader still blocks", async () => {
    const { child, tell } = await start();
    await tell({ flood: 200 });
    const exit = once(child, "exit");
    expect((await tell({ end: true })).written).toBe(false);
    expect(await exit).toEqual([0, null]);
  });

  it("survives a reader that disconnects, and counts the lines that were not read", async () => {
    const { output, tell } = await start();
    output.destroy();
    const { lines } = await tell({ flood: 200 });
    const { dropped } = await tell({ line: "late" });
    expect(lines).toBeGreaterThan(0);
    expect(dropped).toBeGreaterThan(0);
  });
});

it("writes a file completely and in order", async () => {
  const path = join(folder, "file.log");
  const fd = openSync(path, "a");
  const { child, tell } = await startWriter(fd);
  closeSync(fd);
  // At most as much as the writer may buffer: however slow the disk is, nothing is dropped.
  const { lines, dropped } = await tell({ flood: 40 });
  expect(dropped).toBe(0);
  const exit = once(child, "exit");
  expect(await tell({ end: true })).toMatchObject({ written: true });
  expect(await exit).toEqual([0, null]);
  const numbers = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).n);
  expect(numbers).toEqual(Array.from({ length: lines }, (_, n) => n));
});
