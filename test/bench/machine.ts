import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";

export const SERVER_CORE = 0;
export const CLIENT_CORE = 1;

function runs(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: "ignore" });
    return true;
  } catch (error) {
    return (error as { code?: string }).code !== "ENOENT"; // wrk --version exits with 1
  }
}

/** The tools of this machine; the table shows a missing one as the reason. */
export const machine = {
  cores: availableParallelism(),
  cpu: cpus()[0]?.model ?? "unknown",
  node: process.version,
  canPin: availableParallelism() >= 2 && runs("taskset", "-V"),
  hasWrk: runs("wrk", "--version"),
  hasH2load: runs("h2load", "--version"),
  hasProc: process.platform === "linux",
};

/** The reason why rates cannot be measured here; undefined if they can. */
export function whyNoLoad(): string | undefined {
  if (!machine.hasWrk) return "wrk is not installed (Debian: apt-get install wrk)";
  return whyNoCores();
}

/** The reason why HTTP/2 cannot be measured here; undefined if it can. */
export function whyNoStreams(): string | undefined {
  return machine.hasH2load ? undefined : "h2load is not installed (Debian: apt-get install nghttp2-client)";
}

/** The reason why not even our own clients can measure here; undefined if they can. */
export function whyNoCores(): string | undefined {
  if (machine.cores < 2) return "the machine has one core, which server and client would share";
  if (!machine.canPin) return "taskset is not installed (Debian: apt-get install util-linux)";
  return undefined;
}

/** A command bound to one core, if possible. */
export function pinned(core: number, command: string, args: readonly string[]): [string, string[]] {
  return machine.canPin ? ["taskset", ["-c", String(core), command, ...args]] : [command, [...args]];
}

/** This process and its children run on the client's core from now on. */
export function pinSelf(): void {
  if (machine.canPin)
    execFileSync("taskset", ["-a", "-cp", String(CLIENT_CORE), String(process.pid)], { stdio: "ignore" });
}

const TICK_US = 10_000; // USER_HZ is 100 on every Linux that Node runs on

/** CPU time of a process so far, in microseconds. */
export function cpuOf(pid: number): number {
  return timeOf(ownTicks(ticksOf(pid)));
}

/** The same with the time of its children, including those that have ended. */
export function cpuOfAll(parent: number, children: readonly number[]): number {
  const all = ticksOf(parent);
  for (const child of children) {
    try {
      all.push(...ownTicks(ticksOf(child)));
    } catch {
      // At the next reading its parent has it.
    }
  }
  return timeOf(all);
}

function timeOf(ticks: readonly number[]): number {
  return ticks.reduce((sum, some) => sum + some, 0) * TICK_US;
}

function ownTicks(ticks: readonly number[]): readonly number[] {
  return ticks.slice(0, 2);
}

/** Its own time in user and system mode, and the same of its ended children. */
function ticksOf(pid: number): number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // Counted from after the name, which may contain anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).map(Number);
}

/** The busy time of a core so far, of any process, in microseconds. */
export function busyOf(core: number): number {
  const line = readFileSync("/proc/stat", "utf8").match(new RegExp(`^cpu${core} (.*)$`, "m"))?.[1] ?? "";
  const [user, nice, system, , , irq, softirq, steal] = line.split(" ").map(Number) as number[];
  return ((user ?? 0) + (nice ?? 0) + (system ?? 0) + (irq ?? 0) + (softirq ?? 0) + (steal ?? 0)) * TICK_US;
}

/** Resident memory of a process, in bytes. */
export function rssOf(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) * 1024;
}
