import { figureOf, loadBoth } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { KEPT_EVENTS } from "./events.ts";
import { compare, type Figure, unmeasured } from "./figures.ts";
import { SQLITE } from "./gateways.ts";
import { CONNECTIONS } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { BEAT, BEATING, wake } from "./p2.ts";

const FIGURE = `POST /hooks/wake on SQLite, on disk before the 200, ${CONNECTIONS} connections`;

/** Two threads' code is compiled by a third on the same core: for so long that is a good part of what is measured. */
const WARM_UP_S = 8;

/**
 * P3: how many events a gateway takes in that keeps each on disk before it answers, its store's thread on the same core. They wait for the
 * heartbeat, which comes each half hour; beside it the same while they are handed over.
 */
export const measureKeptWakes = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P3", FIGURE, why)];
  await using bare = await startBare("bare-http");
  const note = `the gateway's threads share a core; counted after ${WARM_UP_S} s of the same load`;
  const wish = { ...options, gate: "P3", bare, work: KEPT_EVENTS, warmUpSeconds: WARM_UP_S, run: wake };
  const waiting = {
    ...wish,
    figure: FIGURE,
    bound: { atLeast: 0.25, what: "x bare" },
    gateway: { ...BEATING, agent: {}, store: SQLITE },
    note: `${note}; the events wait for their heartbeat, and each is there in the end`,
  };
  const beating = {
    ...wish,
    figure: `the same while events are handed over every ${BEAT}`,
    gateway: { ...BEATING, store: SQLITE },
    note,
  };
  const { measured, compared } = await loadBoth(waiting);
  const latest = (loads: readonly { p99?: number }[]) => loads.map(({ p99 = Number.NaN }) => p99);
  const p99 = { gate: "P3", figure: "the same, p99", unit: "us", bound: { atMost: 3, what: "x bare" } };
  const beside = await loadBoth(beating);
  return [
    figureOf(measured, compared, waiting),
    compare(latest(measured), latest(compared), p99),
    figureOf(beside.measured, beside.compared, beating),
  ];
};
