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
    return (error as { code?: string }).code !== "ENOENT"; // wrk --version ends with 1
  }
}

/** The tools of this machine; the table gives each lack as a reason. */
export const machine = {
  cores: availableParallelism(),
  cpu: cpus()[0]?.model ?? "unknown",
  node: process.version,
  canPin: availableParallelism() >= 2 && runs("taskset", "-V"),
  hasWrk: runs("wrk", "--version"),
  hasH2load: runs("h2load", "--version"),
  hasProc: process.platform === "linux",
};

/** Why rates cannot be measured here; undefined when they can. */
export function whyNoLoad(): string | undefined {
  if (!machine.hasWrk) return "wrk is not installed (Debian: apt-get install wrk)";
  return whyNoCores();
}

/** Why HTTP/2 cannot be measured here; undefined when it can. */
export function whyNoStreams(): string | undefined {
  return machine.hasH2load ? undefined : "h2load is not installed (Debian: apt-get install nghttp2-client)";
}

/** Why not even a client of our own can be measured with here; undefined when it can. */
export function whyNoCores(): string | undefined {
  if (machine.cores < 2) return "the machine has one core, which server and client would share";
  if (!machine.canPin) return "taskset is not installed (Debian: apt-get install util-linux)";
  return undefined;
}

/** A command bound to one core, where that can be done. */
export function pinned(core: number, command: string, args: readonly string[]): [string, string[]] {
  return machine.canPin ? ["taskset", ["-c", String(core), command, ...args]] : [command, [...args]];
}

/** This process and what it starts from now on stay on the client's core. */
export function pinSelf(): void {
  if (machine.canPin)
    execFileSync("taskset", ["-a", "-cp", String(CLIENT_CORE), String(process.pid)], { stdio: "ignore" });
}

const TICK_US = 10_000; // USER_HZ is 100 on every Linux that Node runs on

/** CPU time of a process so far, in microseconds. */
export function cpuOf(pid: number): number {
  return timeOf(ownTicks(ticksOf(pid)));
}

/** The same with that of its processes which have ended, or which end while they are looked at. */
export function cpuOfAll(parent: number, children: readonly number[]): number {
  const all = ticksOf(parent);
  for (const child of children) {
    try {
      all.push(...ownTicks(ticksOf(child)));
    } catch {
      // From the next look on its parent has it.
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

/** Its own in user and system mode, and the same of those of its processes that have ended. */
function ticksOf(pid: number): number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // Counted from after the name, which may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).map(Number);
}

/** Time that a core has been busy so far, whoever kept it so, in microseconds. */
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
