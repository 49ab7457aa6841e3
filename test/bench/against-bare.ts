import { type Bound, compare, type Figure, median } from "./figures.ts";
import { type BareName, type GatewayOptions, type Started, startBare, startGateway, untilAnswers } from "./gateways.ts";
import { type Cost, type Report, requireClean, unlessIdle } from "./load.ts";
import type { BenchOptions } from "./options.ts";
import { droppedLines, TURNS, type Work } from "./work.ts";

const WARM_UP_S = 2;

/** The part of a load's results that is used to compare two servers; a client may not know the duration of each request. */
export type Compared = Pick<Report, "rate" | "requests" | "refused" | "broken"> & Partial<Pick<Report, "p99">> & Cost;

type Measured = {
  figure: string;
  gateway?: GatewayOptions;
  /** The time for which the gateway has the load before the measurement; by default two seconds. */
  warmUpSeconds?: number;
  work?: Work;
  run(server: Started, seconds: number, seed: number): Promise<Compared>;
};

type Comparison = Measured & {
  gate: string;
  bound: Bound;
  bare: BareName;
  /** Where the latest of a hundred answers has a bound, too. */
  p99?: Bound;
  /** The beginning of the note. */
  note?: string;
};

/**
 * Compares accepted requests with the answers of a bare server to the same bytes: in each round first the bare server, then a new gateway, because a
 * gateway stores more with every message.
 */
export async function compareWithBare(options: Comparison, { rounds, seconds, say }: BenchOptions): Promise<Figure[]> {
  const { gate, figure, run, p99 } = options;
  await using bare = await startBare(options.bare);
  const compared: Compared[] = [];
  const measured: Compared[] = [];
  for (let round = 1; round <= rounds; round++) {
    say(`${gate}: ${figure}, round ${round} of ${rounds}`);
    await run(bare, WARM_UP_S, 2 * round);
    compared.push(await run(bare, seconds, 2 * round + 1));
    measured.push(await measureGateway(options, seconds, 2 * round));
  }
  const rates = figureOf(measured, compared, options);
  if (p99 === undefined) return [rates];
  const latest = (loads: readonly Compared[]) => loads.map((load) => load.p99 ?? Number.NaN);
  const row = { gate, figure: "the same, p99", unit: "us", bound: p99 };
  return [rates, compare(latest(measured), latest(compared), row)];
}

/** A load on a new gateway. It counts if nothing was refused, all accepted work has ended, and no log line was dropped. */
export async function measureGateway(measured: Measured, seconds: number, seed: number): Promise<Compared> {
  const { figure, warmUpSeconds = WARM_UP_S, gateway: how, work = TURNS, run } = measured;
  await using gateway = await startGateway(how);
  await untilAnswers(`${gateway.url}/readyz`);
  requireClean(await run(gateway, warmUpSeconds, seed), figure);
  const before = await work.count(gateway.url);
  const load = await run(gateway, seconds, seed + 1);
  requireClean(load, figure);
  await work.requireEnded(gateway.url, before + load.requests);
  const dropped = await droppedLines(gateway.url);
  if (dropped > 0) throw new Error(`${figure}: ${dropped} log lines were dropped`);
  return load;
}

type Row = Pick<Figure, "gate" | "figure" | "bound" | "note"> & { beside?: string };

/** The rates of both, round by round, with the notes for a reader. */
export function figureOf(measured: readonly Compared[], compared: readonly Compared[], row: Row): Figure {
  const { gate, figure, bound, note, beside = "bare" } = row;
  const rates = (loads: readonly Compared[]) => loads.map(({ rate }) => rate);
  const middle = (loads: readonly Compared[], pick: (load: Compared) => number) => median(loads.map(pick));
  const p99 = middle(measured, (load) => load.p99 ?? Number.NaN);
  const cpu = (loads: readonly Compared[]) => middle(loads, (load) => load.cpu).toFixed(1);
  const disturbed = Math.max(...[...measured, ...compared].map((load) => load.disturbed));
  const words = [
    ...(note === undefined ? [] : [note]),
    `${beside} ${Math.round(median(rates(compared)))}`,
    ...(Number.isNaN(p99) ? [] : [`p99 ${(p99 / 1_000).toFixed(1)} ms`]),
    `CPU a request ${cpu(measured)} us, ${beside} ${cpu(compared)}`,
    `others took at most ${(disturbed * 100).toFixed(0)} % of the core`,
  ];
  const named = { gate, figure, unit: "requests/s", ...(bound && { bound }), note: words.join("; ") };
  return unlessIdle(compare(rates(measured), rates(compared), named), compared);
}
