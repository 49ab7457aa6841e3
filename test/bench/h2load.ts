import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Call } from "./calls.ts";
import { runProgram } from "./children.ts";
import { type Cost, type Report, requireOwnMachine, withCost } from "./load.ts";
import { CLIENT_CORE, pinned } from "./machine.ts";

export type StreamLoad = Pick<Report, "rate" | "requests" | "refused" | "broken"> & Cost;

export type StreamWish = {
  url: string;
  pid: number;
  /** Sent as it is: this client fills nothing in. */
  call: Call;
  seconds: number;
  connections: number;
  streams: number;
  /** HTTP/1.1 in place of HTTP/2. */
  http1?: boolean;
};

/** Runs h2load for `seconds` against a server on this machine: HTTP/2 by prior knowledge, or over TLS by ALPN. */
export const runStreams = async ({ url, pid, call, seconds, ...wish }: StreamWish): Promise<StreamLoad> => {
  requireOwnMachine(url);
  const folder = mkdtempSync(join(tmpdir(), "gateway-h2load-"));
  try {
    const body = join(folder, "body");
    writeFileSync(body, call.body);
    const headers = Object.entries(call.headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    const options = ["-c", `${wish.connections}`, "-m", `${wish.streams}`, "-D", `${seconds}`, "-d", body];
    const all = [...(wish.http1 ? ["--h1"] : []), ...options, ...headers, url + call.path];
    const [command, args] = pinned(CLIENT_CORE, "h2load", all);
    return await withCost(pid, async () =>
      parseStreams(await runProgram(command, args, { timeoutMs: (seconds + 30) * 1_000 })),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** What h2load says in words: `requests: 5 total, …, 5 done, 5 succeeded, 0 failed, 0 errored, 0 timeout`, and of statuses the same way. */
export const parseStreams = (out: string): Omit<StreamLoad, keyof Cost> => {
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
};
