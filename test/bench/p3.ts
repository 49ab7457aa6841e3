import { figureOf, loadBoth } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { EVENTS } from "./events.ts";
import { compare, type Figure, unmeasured } from "./figures.ts";
import { SQLITE } from "./gateways.ts";
import { CONNECTIONS } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { BEATING, wake } from "./p2.ts";

const FIGURE = `POST /hooks/wake on SQLite, on disk before the 200, ${CONNECTIONS} connections`;

/** Two threads' code is compiled by a third on the same core: for so long that is a good part of what is measured. */
const WARM_UP_S = 8;

/** P3: P2's load on a gateway that keeps each event on disk before it answers, its store's thread on the same core. */
export const measureKeptWakes = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P3", FIGURE, why)];
  await using bare = await startBare("bare-http");
  const wish = {
    gate: "P3",
    figure: FIGURE,
    bound: { atLeast: 0.45, what: "x bare" },
    bare,
    gateway: { ...BEATING, store: SQLITE },
    work: EVENTS,
    warmUpSeconds: WARM_UP_S,
    note: `the gateway's threads share a core; counted after ${WARM_UP_S} s of the same load`,
    run: wake,
  };
  const { measured, compared } = await loadBoth({ ...options, ...wish });
  const latest = (loads: readonly { p99?: number }[]) => loads.map(({ p99 = Number.NaN }) => p99);
  return [
    figureOf(measured, compared, wish),
    compare(latest(measured), latest(compared), {
      gate: "P3",
      figure: "the same, p99",
      unit: "us",
      bound: { atMost: 3, what: "x bare" },
    }),
  ];
};
