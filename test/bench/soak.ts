import { type Call, hookTurnCall, messageCall, PASSING_SESSION, wakeCall } from "./calls.ts";
import { type Figure, type Gate, measure, showNumber } from "./figures.ts";
import { type GatewayOptions, readMetrics, SQLITE, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { BEATING } from "./http.ts";
import { CONNECTIONS, type Cost, type Report, requireClean, runLoad, runWrk, withCost } from "./load.ts";
import { rssOf, whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { requireEnded, requireNoneLost } from "./work.ts";

/** The duration of the load, the size of the store, and the time from which memory may not grow. */
type Plan = { seconds: number; keptSeconds: number; fromSeconds: number };
const REAL: Plan = { seconds: 600, keptSeconds: 60, fromSeconds: 180 };
const LOOK: Plan = { seconds: 60, keptSeconds: 5, fromSeconds: 20 };

const HALF = 0.5;
/** With less load the figure is not judged: unused memory does not grow. */
const LEAST_LOAD = 0.4;
const FULL_S = 3;
const EVERY_MS = 1_000;
const MB = 1e6;

/**
 * Fills the store with sessions of ten messages each, sessions of webhooks, and events, a third of the load each. The events are sent to the agent's
 * main session, which is always in use: it is compacted automatically, and its old entries are erased.
 */
const CALLS = [messageCall(PASSING_SESSION), hookTurnCall(), wakeCall()] as const;
const SESSIONS = 1_000;
const HEAP = 'nodejs_heap_bytes{kind="used"}';

type Look = { atMs: number; rss: number; heap: number; store: number; sessions: number };
type Soaked = { loads: readonly { rate: number; full: number }[]; cost: Cost; looks: readonly Look[] };

/** One reading of a changing value. */
type Sample = { atMs: number; value: number };

const MINUTE_MS = 60_000;

/** The growth of the values per minute: the slope of the best line (least squares). */
function slopeOf(samples: readonly Sample[]): number {
  if (samples.length < 2) throw new Error("a slope needs two values");
  const mean = (pick: (sample: Sample) => number) => samples.reduce((sum, of) => sum + pick(of), 0) / samples.length;
  const [at, value] = [mean(({ atMs }) => atMs), mean((sample) => sample.value)];
  const both = mean((sample) => (sample.atMs - at) * (sample.value - value));
  const spread = mean(({ atMs }) => (atMs - at) ** 2);
  if (spread === 0) throw new Error("a slope needs two times");
  return (both / spread) * MINUTE_MS;
}

/** P16: whether memory grows under half of the maximum load, once records are erased as fast as new ones are stored. */
async function measureSoak(where: string, store: object | undefined, { short, say }: BenchOptions): Promise<Figure[]> {
  const plan = short ? LOOK : REAL;
  const kept = `${plan.keptSeconds}s`;
  const sessions = { retention: kept, webhookRetention: kept, eventRetention: kept };
  const how = { ...BEATING, sessions, ...(store && { store }) };
  say(`P16: what full load is ${where}`);
  const full: number[] = [];
  for (const call of CALLS) full.push(await fullRate(how, call));
  say(`P16: ${plan.seconds} s at half of that`);
  const name = `memory at half load, with a retention of ${kept} ${where}`;
  return [figureOf(name, plan, await soak(how, plan, full))];
}

async function fullRate(how: GatewayOptions, call: Call): Promise<number> {
  await using gateway = await startGateway(how);
  await untilAnswers(`${gateway.url}/readyz`);
  const load = { url: gateway.url, pid: gateway.pid, call, sessions: SESSIONS };
  await runLoad({ ...load, seconds: 1, seed: 1 });
  return (await runLoad({ ...load, seconds: FULL_S, seed: 2 })).rate;
}

async function soak(how: GatewayOptions, { seconds }: Plan, full: readonly number[]): Promise<Soaked> {
  await using gateway = await startGateway(how);
  const { url, pid } = gateway;
  await untilAnswers(`${url}/readyz`);
  const run = async () => {
    const reports = await Promise.all(
      CALLS.map((call, n) => {
        const rate = ((full[n] as number) * HALF) / CALLS.length;
        const restMs = Math.max(1, Math.round((CONNECTIONS / rate) * 1_000));
        return runWrk({ url, call, sessions: SESSIONS, seconds, seed: n + 1, restMs });
      }),
    );
    return { reports, requests: reports.reduce((sum, { requests }) => sum + requests, 0) };
  };
  const looking = new AbortController();
  const [looks, { reports, ...cost }] = await Promise.all([
    lookEvery(gateway, looking.signal),
    withCost(pid, run).finally(() => looking.abort()),
  ]);
  for (const report of reports) requireClean(report, "P16");
  await requireNoneLost(url);
  const [messages, turns] = reports as [Report, Report, Report];
  await requireEnded(url, messages.requests + turns.requests);
  return { loads: reports.map(({ rate }, n) => ({ rate, full: full[n] as number })), cost, looks };
}

/** Samples of the process and its store, second by second. */
async function lookEvery({ url, pid }: Started, signal: AbortSignal): Promise<Look[]> {
  const looks: Look[] = [];
  while (!signal.aborted) {
    const atMs = performance.now();
    const read = await readMetrics(url);
    const [heap, store, sessions] = [read(HEAP), read("gateway_store_bytes "), read("gateway_sessions ")];
    looks.push({ atMs, rss: rssOf(pid), heap, store, sessions });
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  return looks;
}

function figureOf(figure: string, { seconds, fromSeconds }: Plan, { loads, cost, looks }: Soaked): Figure {
  const began = looks[0]?.atMs ?? 0;
  const late = looks.filter(({ atMs }) => atMs - began >= fromSeconds * 1_000);
  const slope = (name: keyof Look) => slopeOf(late.map((look) => ({ atMs: look.atMs, value: look[name] })));
  const ends = (name: keyof Look, unit = MB) =>
    [late.at(0), late.at(-1)].map((look) => Math.round((look?.[name] ?? 0) / unit)).join(" to ");
  const share = loads.reduce((sum, { rate, full }) => sum + rate / full, 0);
  const words = [
    ...(seconds < REAL.seconds ? [`a look only: ${seconds} s, of which the first ${fromSeconds} do not count`] : []),
    `RSS ${ends("rss")} MB, the heap ${ends("heap")}, and what the store counts ${ends("store")}, of which the slope is ` +
      `${showNumber(slope("store") / MB)} MB a minute; ${ends("sessions", 1)} sessions`,
    `messages, turns of webhooks and events: ${loads.map(({ rate }) => Math.round(rate)).join(" + ")} requests/s, ` +
      `${Math.round(share * 100)} % of the full load, with ${Math.round(cost.busy * 100)} % of the core`,
    `others took ${Math.round(cost.disturbed * 100)} %`,
  ];
  const isJudged = seconds >= REAL.seconds && share >= LEAST_LOAD;
  return measure([slope("rss") / MB], {
    gate: "P16",
    figure,
    unit: "MB a minute",
    ...(isJudged && { bound: { atMost: 1 } }),
    note: words.join("; "),
  });
}

function whyNoSoak({ short, only }: BenchOptions): string | undefined {
  return whyNoLoad() ?? (short || only ? undefined : "it takes 11 minutes: npm run bench -- --only P16,P16-SQLITE");
}

export const SOAK_GATES: readonly Gate[] = [
  {
    gate: "P16",
    figure: "memory at half load",
    lack: whyNoSoak,
    measure: (options) => measureSoak("in memory", undefined, options),
  },
  {
    gate: "P16-SQLITE",
    figure: "memory at half load on SQLite",
    lack: whyNoSoak,
    measure: (options) => measureSoak("on SQLite", SQLITE, options),
  },
];
