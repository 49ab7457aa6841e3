import { runProgram } from "./children.ts";
import { type Figure, median } from "./figures.ts";
import { busyOf, CLIENT_CORE, cpuOf, pinned, SERVER_CORE } from "./machine.ts";

/** What a load found. Times in microseconds. */
export type Load = {
  /** Requests a second. */
  rate: number;
  requests: number;
  /** Answers that were no 2xx. */
  refused: number;
  /** Connections that failed, and answers that did not come. */
  broken: number;
  p50: number;
  p99: number;
  max: number;
  /** CPU time of the server for one request. */
  cpu: number;
  /** The share of its core that the server used. */
  busy: number;
  /** The share of the server's core that others took. */
  disturbed: number;
};

type Report = Omit<Load, "cpu" | "busy" | "disturbed">;

export type LoadWish = {
  url: string;
  pid: number;
  token: string;
  seconds: number;
  /** Messages go to so many sessions at random; 0: each opens its own. */
  sessions: number;
  seed: number;
  connections?: number;
};

/** Runs wrk for `seconds` against a server on this machine. */
export const runLoad = async (wish: LoadWish): Promise<Load> => {
  const { url, pid, token, seconds, sessions, seed, connections = 50 } = wish;
  if (new URL(url).hostname !== "127.0.0.1") throw new Error(`loads go to 127.0.0.1 only, not to ${url}`);
  const [command, args] = pinned(CLIENT_CORE, "wrk", [
    ...[
      "-t",
      "1",
      "-c",
      String(connections),
      "-d",
      `${seconds}s`,
      "--timeout",
      "10s",
      "-s",
      "test/bench/load.lua",
      url,
    ],
    ...["--", token, String(sessions), String(seed)],
  ]);
  const from = { cpu: cpuOf(pid), busy: busyOf(SERVER_CORE), at: performance.now() };
  const out = await runProgram(command, args, { timeoutMs: (seconds + 30) * 1_000 });
  const cpu = cpuOf(pid) - from.cpu;
  const busy = busyOf(SERVER_CORE) - from.busy;
  const elapsed = (performance.now() - from.at) * 1_000;
  const report = parseReport(out);
  return { ...report, cpu: cpu / report.requests, busy: cpu / elapsed, disturbed: Math.max(0, (busy - cpu) / elapsed) };
};

/** The line of JSON that load.lua writes below wrk's own words. */
export const parseReport = (out: string): Report => {
  const line = out.split("\n").find((words) => words.startsWith("{"));
  if (line === undefined) throw new Error(`wrk reported nothing: ${out.slice(0, 500)}`);
  const { requests, micros, refused, broken, p50, p99, max } = JSON.parse(line) as Record<string, number>;
  const all = { requests, micros, refused, broken, p50, p99, max } as Record<string, number>;
  for (const [name, value] of Object.entries(all)) {
    if (!Number.isFinite(value)) throw new Error(`wrk's report has no ${name}: ${line}`);
  }
  const { micros: _, ...report } = all as Report & { micros: number };
  return { ...report, rate: ((all.requests as number) / (all.micros as number)) * 1e6 };
};

/** Throws when a load does not count: something was refused, or did not come back. */
export const requireClean = (load: Load, what: string): void => {
  if (load.refused + load.broken > 0)
    throw new Error(`${what}: ${load.refused} of ${load.requests} requests were refused, ${load.broken} broke`);
};

const KEPT_BUSY = 0.85;

/**
 * A ratio as it is, but not judged when what it is compared with was not kept busy: then the client, or others on its core, set that rate,
 * and the ratio flatters.
 */
export const unlessIdle = (figure: Figure, compared: readonly Load[]): Figure => {
  const busy = median(compared.map((load) => load.busy));
  if (busy >= KEPT_BUSY) return figure;
  const { held: _, ...row } = figure;
  const why = `not judged: what it is compared with was only ${Math.round(busy * 100)} % busy, as others used the client's core`;
  return { ...row, note: row.note === undefined ? why : `${why}; ${row.note}` };
};
