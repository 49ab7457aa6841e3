import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Call, requestText } from "./calls.ts";
import { runProgram } from "./children.ts";
import { type Figure, median } from "./figures.ts";
import { busyOf, CLIENT_CORE, cpuOf, pinned, SERVER_CORE } from "./machine.ts";

export type Cost = {
  /** CPU time of the server per request, in microseconds. */
  cpu: number;
  /** The share of its core that the server used. */
  busy: number;
  /** The share of the server's core that other processes used. */
  disturbed: number;
};

/** The results of a load. Times in microseconds. */
export type Report = {
  /** Requests per second. */
  rate: number;
  requests: number;
  /** Answers other than 2xx. */
  refused: number;
  /** Failed connections and missing answers. */
  broken: number;
  p50: number;
  p99: number;
  max: number;
};

export type Load = Report & Cost;

type LoadOptions = {
  /** The server's address; the call has the path. */
  url: string;
  pid: number;
  call: Call;
  seconds: number;
  /** The number of sessions for the call's `{session}`. */
  sessions: number;
  seed: number;
  connections?: number;
  /** The average pause of a connection before a request, in milliseconds; without it the load is as high as possible. */
  restMs?: number;
};

/** Runs a load, and measures the server's cost meanwhile. */
export async function withCost<Found extends { requests: number }>(
  pid: number,
  run: () => Promise<Found>,
): Promise<Found & Cost> {
  const from = { cpu: cpuOf(pid), busy: busyOf(SERVER_CORE), at: performance.now() };
  const found = await run();
  const cpu = cpuOf(pid) - from.cpu;
  const busy = busyOf(SERVER_CORE) - from.busy;
  const elapsed = (performance.now() - from.at) * 1_000;
  return { ...found, cpu: cpu / found.requests, busy: cpu / elapsed, disturbed: Math.max(0, (busy - cpu) / elapsed) };
}

export const CONNECTIONS = 50;

/** Throws unless a load stays on this machine. */
export function requireOwnMachine(url: string): URL {
  const place = new URL(url);
  if (place.hostname !== "127.0.0.1") throw new Error(`loads go to 127.0.0.1 only, not to ${url}`);
  return place;
}

/** Runs wrk for `seconds` against a server on this machine. */
export function runLoad(options: LoadOptions): Promise<Load> {
  return withCost(options.pid, () => runWrk(options));
}

/** The same for one of several concurrent loads: the cost of each for the server is unknown. */
export async function runWrk(load: Omit<LoadOptions, "pid">): Promise<Report> {
  const { url, call, seconds, sessions, seed, connections = CONNECTIONS, restMs } = load;
  const { host } = requireOwnMachine(url);
  const options = [
    "-t",
    "1",
    "-c",
    `${connections}`,
    "-d",
    `${seconds}s`,
    "--timeout",
    "10s",
    "-s",
    "test/bench/load.lua",
  ];
  const script = [requestText(call, host), `${sessions}`, `${seed}`, ...(restMs === undefined ? [] : [`${restMs}`])];
  const [command, args] = pinned(CLIENT_CORE, "wrk", [...options, url, "--", ...script]);
  const timeoutMs = (seconds + 30) * 1_000;
  return parseReport(await runProgram(command, args, { timeoutMs }));
}

/** The line of JSON that load.lua writes after wrk's own output. */
function parseReport(out: string): Report {
  const line = out.split("\n").find((words) => words.startsWith("{"));
  if (line === undefined) throw new Error(`wrk reported nothing: ${out.slice(0, 500)}`);
  const { requests, micros, refused, broken, p50, p99, max } = JSON.parse(line) as Record<string, number>;
  const all = { requests, micros, refused, broken, p50, p99, max } as Record<string, number>;
  for (const [name, value] of Object.entries(all)) {
    if (!Number.isFinite(value)) throw new Error(`wrk's report has no ${name}: ${line}`);
  }
  const { micros: _, ...report } = all as Report & { micros: number };
  return { ...report, rate: ((all.requests as number) / (all.micros as number)) * 1e6 };
}

/** Throws if a load does not count: a request was refused or not answered. */
export function requireClean(load: Pick<Report, "requests" | "refused" | "broken">, what: string): void {
  if (load.refused + load.broken > 0)
    throw new Error(`${what}: ${load.refused} of ${load.requests} requests were refused, ${load.broken} broke`);
}

const KEPT_BUSY = 0.85;

/**
 * The ratio, without a judgement if the compared server was not busy: then the client or other processes determined its rate, and the ratio is too
 * good.
 */
export function unlessIdle(figure: Figure, compared: readonly Pick<Cost, "busy">[]): Figure {
  const busy = median(compared.map((load) => load.busy));
  if (busy >= KEPT_BUSY) return figure;
  const { held: _, ...row } = figure;
  const why = `not judged: what it is compared with was only ${Math.round(busy * 100)} % busy, as others used the client's core`;
  return { ...row, note: row.note === undefined ? why : `${why}; ${row.note}` };
}

type StreamLoad = Pick<Report, "rate" | "requests" | "refused" | "broken"> & Cost;

type StreamOptions = {
  url: string;
  pid: number;
  /** Sent unchanged: this client has no placeholders. */
  call: Call;
  seconds: number;
  connections: number;
  streams: number;
};

/** Runs h2load for `seconds` against a server on this machine: HTTP/2 by prior knowledge, or over TLS by ALPN. */
export async function runStreams({ url, pid, call, seconds, ...load }: StreamOptions): Promise<StreamLoad> {
  requireOwnMachine(url);
  const folder = mkdtempSync(join(tmpdir(), "gateway-h2load-"));
  try {
    const body = join(folder, "body");
    writeFileSync(body, call.body);
    const headers = Object.entries(call.headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    const options = ["-c", `${load.connections}`, "-m", `${load.streams}`, "-D", `${seconds}`, "-d", body];
    const all = [...options, ...headers, url + call.path];
    const [command, args] = pinned(CLIENT_CORE, "h2load", all);
    return await withCost(pid, async () =>
      parseStreams(await runProgram(command, args, { timeoutMs: (seconds + 30) * 1_000 })),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** h2load's output: `requests: 5 total, …, 5 done, 5 succeeded, 0 failed, 0 errored, 0 timeout`, and a similar line for statuses. */
function parseStreams(out: string): Omit<StreamLoad, keyof Cost> {
  const line = (start: string) => out.split("\n").find((words) => words.startsWith(start));
  const [finished, requests, statuses] = [line("finished in "), line("requests: "), line("status codes: ")];
  if (!finished || !requests || !statuses) throw new Error(`h2load reported nothing: ${out.slice(0, 500)}`);
  const count = (words: string, name: string): number => {
    const found = Number(new RegExp(`(\\d+) ${name}`).exec(words)?.[1] ?? Number.NaN);
    if (Number.isNaN(found)) throw new Error(`h2load's report has no ${name}: ${words}`);
    return found;
  };
  const rate = Number(/([\d.]+) req\/s/.exec(finished)?.[1] ?? Number.NaN);
  if (Number.isNaN(rate)) throw new Error(`h2load's report has no rate: ${finished}`);
  const good = count(statuses, "2xx");
  return {
    rate,
    requests: good,
    refused: count(statuses, "3xx") + count(statuses, "4xx") + count(statuses, "5xx"),
    broken: count(requests, "errored") + count(requests, "timeout"),
  };
}
